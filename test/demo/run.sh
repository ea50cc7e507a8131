#!/bin/bash
# run.sh AGENT BAKERY: live metrics of two instrumented programs, through a pmcd of its own.
#
# Starts a private pmcd with that agent, the bakery (Go, with the Speed library) and the shop (Python, with PCP's mmv
# module), and shows their metrics with PCP's clients. Takes everything away again, also on Ctrl-C.
set -eu
agent=$(realpath "$1") bakery=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
dir=$(mktemp -d "${TMPDIR:-/tmp}/pmdammv-demo.XXXXXX")
pids=()

cleanup() {
	trap '' INT TERM
	# The programs before pmcd; each of them ends on SIGTERM.
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill -TERM "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

show() {
	printf '\n$ %s\n' "$*"
	"$@" & # not in the foreground, so that a signal is heeded at once
	pids+=($!)
	wait $!
	unset 'pids[-1]'
}

# A program that says "ready" when its file is complete.
program() {
	local out
	exec {out}< <(exec "$@")
	pids+=($!)
	read -r -t 20 -u "$out" _ || { echo "demo: $1 did not start" >&2; exit 1; }
}

port=$(/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$here/../pmcd.sh" "$dir" "$port" "$agent" -d 70 -l "$dir/log/pmcd/mmv.log" &
pids+=($!)
until [ -e "$dir/log/pmcd/pmcd.log" ]; do kill -0 "${pids[0]}"; sleep .05; done

unset PCP_DIR PCP_TMP_DIR
export PCP_CONF=$dir/etc/pcp.conf PMCD_PORT=$port PMCD_SOCKET=$dir/run/pmcd.socket
"$(sed -n 's|^PCP_BINADM_DIR=||p' "$PCP_CONF")/pmcd_wait" -h "127.0.0.1:$port" -t 20sec || {
	echo "demo: pmcd did not start:" >&2
	cat "$dir"/log/pmcd/* >&2
	exit 1
}
program "$bakery"
program /usr/bin/python3 "$here/shop.py"
sleep 2 & # for something to show
wait $!

show pminfo -dfmtT mmv
show pminfo -l mmv.shop.sales
show pmval -s 5 -t 1 mmv.bakery.loaves
echo
