#!/bin/sh
# version.sh: the version for packages, from git: 1.2.3 for the tag v1.2.3, 1.2.3+4.gabcdef four commits later, and before
# the first tag 0~20261130.gabcdef, of which later ones are newer.
set -eu
v=$(git describe --tags --match 'v[0-9]*' --long --dirty 2>/dev/null) || v=''
case $v in
'')
	date=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d.%H%M%S)
	dirty=$(git describe --always --dirty | sed -n 's/.*-dirty$/.dirty/p')
	echo "0~$date.g$(git rev-parse --short=8 HEAD)$dirty"
	;;
*)
	echo "$v" | sed -e 's/^v//' -e 's/-dirty$/.dirty/' -e 's/-0-g[0-9a-f]*$//' -e 's/-0-g[0-9a-f]*\.dirty$/+dirty/' -e 's/-\([0-9]*\)-g/+\1.g/'
	;;
esac
