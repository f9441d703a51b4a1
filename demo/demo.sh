#!/bin/sh
# Builds the program and plays the demo with it. "make demo" is this, after it
# has seen to the programs the demo needs.
set -eu
cd "$(dirname "$0")/.."
make build
exec go run ./demo -agent bin/agent
