#!/bin/bash
# fuzz.sh TIME: runs every fuzz target of the module for that time, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' cmd pkg test |
	sed 's|/[^/]*_test.go:func \(Fuzz[A-Za-z0-9_]*\).*| \1|' |
	while read -r dir target; do
		echo "fuzz: $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "./$dir" </dev/null
	done
