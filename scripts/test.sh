#!/bin/sh
# Formatting, vet for both systems, and every test in any order. Further
# arguments go to "go test"; RACE=1 adds the race detector.
#
# The last lines are go test's own line for each package, then, when something
# failed, the names of what failed once more, and one line with the count: who
# reads only the end of a log reads enough.
set -eu
cd "$(dirname "$0")/.."

step() { printf '== %s\n' "$*"; }

step "gofmt"
unformatted=$("$(go env GOROOT)/bin/gofmt" -l .)
if [ -n "$unformatted" ]; then
	printf 'test: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi

for system in linux darwin; do
	step "go vet for $system"
	GOOS=$system CGO_ENABLED=0 go vet ./...
	case " $* " in
	*" -tags long "*) GOOS=$system CGO_ENABLED=0 go vet -tags long ./... ;;
	esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "${RACE:-}" = 1 ]; then
	if ! command -v "$(go env CC)" >/dev/null 2>&1; then
		echo "test: the race detector needs a C compiler, and $(go env CC) is not on PATH. Install gcc or clang, or run make test, which needs none." >&2
		exit 1
	fi
	export CGO_ENABLED=1
	set -- -race "$@"
else
	export CGO_ENABLED=0
fi

# Sonny's tests drive the programs themselves. Built here, and in a folder of this
# run, they are never those of an older source.
step "agent and sonny, with test hooks"
case " $* " in
*" -race "*) go build -race -buildvcs=false -tags testhooks -o "$work/bin/" ./cmd/agent ./cmd/sonny ;;
*) go build -buildvcs=false -tags testhooks -o "$work/bin/" ./cmd/agent ./cmd/sonny ;;
esac
export SONNY_TEST_BIN="$work/bin"

step "go test -shuffle=on $* ./..."
began=$(date +%s)
# A pipe's status is tee's, so that of go test goes through a file.
{
	code=0
	go test -shuffle=on "$@" ./... || code=$?
	echo "$code" >"$work/code"
} 2>&1 | tee "$work/log"
took=$(($(date +%s) - began))

ok=$(grep -c '^ok ' "$work/log" || true)
bad=$(grep -c '^FAIL	' "$work/log" || true)
if [ "$(cat "$work/code")" -ne 0 ]; then
	step "what failed"
	grep -E '^(    )?--- FAIL|^FAIL	|^panic: ' "$work/log" || true
	echo "test: FAILED: $bad packages failed, $ok passed, in $took s"
	exit 1
fi
echo "test: passed: $ok packages in $took s"
