# lib.sh: for the scripts that run in a booted copy. A line "ok NAME" or "FAIL NAME" is the result of a check.
# shellcheck shell=bash disable=SC2034 # what seems unused, those scripts use

. /etc/pcp.conf
failed=0
conf=/etc/pcp/pmcd/pmcd.conf
here=/var/lib/pcp/pmdas/pmdammv
socket=/run/pmdammv/mmv.socket

# check NAME COMMAND...
check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "ok $name"
	else
		failed=1
		echo "FAIL $name: $*"
		echo "$out"
	fi
}

# within SECONDS NAME COMMAND...: until it succeeds.
within() {
	local limit=$1 name=$2 from=${EPOCHREALTIME/./} now
	shift 2
	until "$@" >/dev/null 2>&1; do
		now=${EPOCHREALTIME/./}
		if [ $((now - from)) -gt $((limit * 1000000)) ]; then
			failed=1
			echo "FAIL $name: not within $limit s: $*"
			"$@"
			grep -h 'mmv\|RESTARTED\|imeout' /var/log/pcp/pmcd/pmcd.log | tail -n 5
			journalctl -u pmdammv -n 8 --no-pager -o short-precise
			return
		fi
		sleep 0.02
	done
	now=${EPOCHREALTIME/./}
	echo "ok $name"
	printf 'time %s: %d ms\n' "$name" $(((now - from) / 1000))
}

# ours: whether this agent's metrics are there; theirs: those of PCP's agent. program: those of the instrumented program.
ours() { pminfo -f mmv.control.rejected | grep -q 'value [0-9]'; }
theirs() { ! ours && pminfo -f mmv.control.files | grep -q 'value [0-9]'; }
program() { ours && pminfo -f mmv.writer.count | grep -q 'value 7'; }
not() { ! "$@"; }
pid() { systemctl show -P MainPID pmdammv; }
hup() { kill -s HUP "$(cat /run/pcp/pmcd.pid)"; }

# writer: starts the instrumented program; its count is 7.
writer() {
	mkfifo /tmp/lines
	/in/writer 2 writer 0 0 </tmp/lines >/tmp/writer.out &
	exec 9>/tmp/lines
	for _ in 1 2 3 4 5 6 7; do echo >&9; done
	until grep -q '^7$' /tmp/writer.out; do sleep 0.02; done
}

# follow FILE TITLE: runs the commands of that section of the instructions, word by word, in the directory of the packages.
follow() {
	awk -v title="## $2" '
		/^## / { on = $0 == title }
		/^```/ { code = on && $0 == "```sh"; next }
		code' "/in/$1" | sed "s/_amd64/_$(dpkg --print-architecture)/" >/tmp/commands
	[ -s /tmp/commands ] || return 1
	(cd /packages && bash -eux /tmp/commands) </dev/null
}
