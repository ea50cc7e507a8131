#!/bin/sh
# Before the files go: PCP's own agent comes back, and the service ends. Not when a newer version follows: deb says
# "upgrade", rpm 1.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
remove=/var/lib/pcp/pmdas/pmdammv/Remove
if [ -x $remove ] && ! $remove </dev/null >/dev/null; then
	echo "pmdammv: see to the mmv entry in pmcd.conf" >&2
fi
if command -v systemctl >/dev/null; then
	systemctl -q disable pmdammv.socket pmdammv.service 2>/dev/null || true
	if [ -d /run/systemd/system ]; then
		systemctl -q stop pmdammv.socket pmdammv.service || true
	fi
fi
