#!/bin/bash
# Installs what the tests and the demo use, where it is missing: PCP with its clients, its MMV library for C and its
# module for Python, a C compiler, and packages given as arguments. Safe to run again; changes nothing and needs no root when nothing is missing.
set -eu

say() { echo "setup: $*" >&2; }

# As root, or through sudo.
root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		say "needs root to run: $*"
		say "run this script once as root, or install sudo"
		exit 1
	fi
}

debian() {
	local p need=()
	# Development packages have the library's version in their name: a pattern for dpkg, a regular expression for apt.
	for p in pcp python3-pcp 'libpcp[0-9]-dev' 'libpcp-mmv[0-9]-dev' gcc libc6-dev "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || need+=("^$p\$")
	done
	[ ${#need[@]} = 0 ] && return
	say "installing ${need[*]//[\^$]/}"
	# Without SYSTEMD_OFFLINE, pcp's scripts call systemctl, and fail where systemd does not run.
	local apt=(env SYSTEMD_OFFLINE=1 DEBIAN_FRONTEND=noninteractive apt-get)
	root "${apt[@]}" update -qq
	root "${apt[@]}" install -y -qq --no-install-recommends "${need[@]}"
}

fedora() {
	local p need=()
	for p in pcp pcp-devel python3-pcp gcc "$@"; do
		rpm -q "$p" >/dev/null 2>&1 || need+=("$p")
	done
	[ ${#need[@]} = 0 ] && return
	say "installing ${need[*]}"
	root dnf install -y -q "${need[@]}"
}

if command -v apt-get >/dev/null; then
	debian "$@"
elif command -v dnf >/dev/null; then
	fedora "$@"
else
	say "found neither apt-get nor dnf; install these yourself:"
	say "  PCP (pmcd, pminfo, pmval, dbpmda), the headers of libpcp and libpcp_mmv, PCP's Python module, a C compiler"
	exit 1
fi
