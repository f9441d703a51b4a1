#!/bin/sh
# The stricter formatter and the static analyser, at fixed versions. Both are
# fetched once by the go command and work offline from then on.
set -eu
cd "$(dirname "$0")/.."
gofumpt=mvdan.cc/gofumpt@v0.12.0
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
bad=0

echo "== $gofumpt"
unformatted=$(go run "$gofumpt" -l .)
if [ -n "$unformatted" ]; then
	printf 'lint: run "go run %s -w" on:\n%s\n' "$gofumpt" "$unformatted" >&2
	bad=1
fi
echo "== $staticcheck"
CGO_ENABLED=0 go run "$staticcheck" ./... || bad=1
if [ "$bad" -ne 0 ]; then
	echo "lint: FAILED"
	exit 1
fi
echo "lint: passed"
