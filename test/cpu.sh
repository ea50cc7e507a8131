#!/bin/bash
# cpu.sh AGENT: what monitoring 200,000 metrics of 200 programs costs pmcd and its agent: AGENT on a pipe, PCP's agent on
# a pipe, and PCP's shared object inside pmcd. A real pmcd and real clients each time: pminfo -f of everything, pmval of one
# metric 100 times a second, pmlogger of 10,000 metrics each second. Prints seconds of processor time of pmcd and agent, and
# how often the agent wakes up while nothing is asked.
set -eu
here=$(dirname "$(readlink -f "$0")")
agent=$(readlink -f "$1")
top=$(mktemp -d) pmcd=
chmod 755 "$top" # an agent that is started as root drops to PCP's user
# shellcheck disable=SC2064 # the directory is known by now
trap "rm -rf '$top'" EXIT
trap '[ -z "$pmcd" ] || kill "$pmcd"' INT TERM
tick=$(getconf CLK_TCK)
P=$(sed -n 's/^PCP_PMDAS_DIR=//p' /etc/pcp.conf)

spent() { # seconds of processor time of pmcd and its children
	local sum=0 p
	for p in "$pmcd" $(cat "/proc/$pmcd/task/$pmcd/children"); do
		sum=$((sum + $(awk '{ print $14 + $15 }' "/proc/$p/stat")))
	done
	echo $sum
}
wakes() { # times that threads of the agent have begun to wait
	cat /proc/"$1"/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}
show() { printf '  %-44s %8.2f s\n' "$1" "$(echo "$(($(spent) - before)) / $tick" | bc -l)"; }

for mode in "$agent -d 70" "$P/mmv/pmdammv -d 70 -U $(id -un)" dso; do
	dir=$top/$(echo "$mode" | cksum | cut -d' ' -f1) port=$((40000 + RANDOM % 20000))
	mkdir -p "$dir/tmp"
	(cd "$here/.." && go run ./test/sidebyside -write "$dir/tmp" files200)
	# shellcheck disable=SC2086 # words
	"$here/pmcd.sh" "$dir" $port $mode &
	pmcd=$!
	export PCP_CONF=$dir/etc/pcp.conf PMCD_PORT=$port
	until pminfo -h localhost mmv.control.files >/dev/null 2>&1; do
		kill -0 $pmcd
	done
	echo "${mode%% *}"
	pminfo -h localhost -f mmv >/dev/null # the first time loads the files
	before=$(spent)
	pminfo -h localhost -f mmv >/dev/null
	show "pminfo -f of everything"
	before=$(spent)
	pmval -h localhost -t 10msec -s 1000 mmv.f100.m.n0500 >/dev/null
	show "pmval, 1000 samples in 10 s"
	echo "log mandatory on 1 sec { $(echo mmv.f{0..9}) }" >"$dir/pmlogger.conf" # about what one PDU of a client can ask for
	before=$(spent)
	pmlogger -h localhost -c "$dir/pmlogger.conf" -T 20sec -l "$dir/pmlogger.log" "$dir/archive" || tail -5 "$dir/pmlogger.log"
	show "pmlogger of 10,000, every second for 20 s"
	p=$(cat "/proc/$pmcd/task/$pmcd/children")
	if p=${p% } && [ -n "$p" ]; then # none, if it is in pmcd
		before=$(wakes "$p")
		sleep 60
		printf '  %-44s %8d\n' "wake-ups of the agent in a minute of nothing" $(($(wakes "$p") - before))
	fi
	kill $pmcd
	wait $pmcd || true
	pmcd=
done
