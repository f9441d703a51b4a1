#!/bin/sh
# Reads what the model families send and receive with the vendors' own
# libraries: a module of its own, which is no part of what ships and is fetched
# once by the go command. Further arguments go to "go test".
set -eu
cd "$(dirname "$0")/../oracle"

unformatted=$("$(go env GOROOT)/bin/gofmt" -l .)
if [ -n "$unformatted" ]; then
	printf 'oracle: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
export CGO_ENABLED=0 GOWORK=off
go vet ./...
go test "$@" ./...
