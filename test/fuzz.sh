#!/bin/bash
# fuzz.sh TIME: runs every fuzz target of the module for that time, one after the other. The time is kept from
# outside, with an interrupt: go test -fuzztime now and then fails at its own deadline with nothing found
# (golang/go#75804). The interrupt goes to the process that keeps the workers (--foreground): a worker that gets it
# first counts as one that has crashed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
binaries=$(mktemp -d)
trap 'rm -rf "$binaries"' EXIT
module=$(go list -m)
cache=$(go env GOCACHE)/fuzz
grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' cmd pkg test |
	sed 's|/[^/]*_test.go:func \(Fuzz[A-Za-z0-9_]*\).*| \1|' |
	while read -r dir target; do
		echo "fuzz: $dir $target"
		binary=$binaries/${dir//\//-}.test
		[ -e "$binary" ] || go test -c -fuzz . -o "$binary" "./$dir"
		cd "$root/$dir"
		timeout --foreground --preserve-status --kill-after 1m --signal INT "$1" "$binary" -test.run '^$' -test.fuzz "^$target\$" \
			-test.fuzzcachedir "$cache/$module/$dir" </dev/null
		cd "$root"
	done
