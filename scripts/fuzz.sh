#!/bin/sh
# Runs every fuzz target of the tree for a counted number of executions, one
# after another. A count, not a time, so that two runs do the same work; what
# go finds it leaves under the package's testdata/fuzz.
#
#   scripts/fuzz.sh [EXECUTIONS [PACKAGES]]      20000x and ./... when not given
set -eu
cd "$(dirname "$0")/.."
count=${1:-20000x}
packages=${2:-./...}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# go test -list prints a package's matching names, then the package's line.
go test -list='^Fuzz' "$packages" >"$work/list" || {
	cat "$work/list" >&2
	exit 1
}
awk '/^Fuzz/ { names[n++] = $1; next }
     /^ok/   { for (i = 0; i < n; i++) print $2, names[i] }
             { n = 0 }' "$work/list" >"$work/targets"

targets=$(wc -l <"$work/targets" | tr -d ' ')
if [ "$targets" -eq 0 ]; then
	echo "fuzz: no fuzz target in $packages" >&2
	exit 1
fi
while read -r package target; do
	printf '== %s %s\n' "$package" "$target"
	go test -run='^$' -fuzz="^$target\$" -fuzztime="$count" "$package" </dev/null
done <"$work/targets"
echo "fuzz: passed: $targets targets, $count each"
