# shellcheck shell=sh disable=SC2034 # what seems unused, Install and Remove use
# common.sh: what Install and Remove share; sh(1). PCP's pmdaproc.sh is not used: it wants a directory named like
# the label in pmcd.conf, sorts that file and drops comments from it, takes mmv out of the name space, and ends every process
# called pmdammv.

# shellcheck source=/dev/null
. "$PCP_DIR/etc/pcp.env"

prog=$(basename "$0")
status=0
echo=false query=true verbose=false root='' namespace=''

fail() {
	echo "$prog: $*" >&2
	status=1
	exit 1
}

usage() {
	echo "Usage: $prog $1" >&2
	exit 1
}

# begin: after the options. PCP's variables with a prefix below are paths in the tree of -R.
begin() {
	if [ -z "$root" ] && [ -n "$ROOT" ] && [ "$ROOT" != / ]; then
		fail "ROOT is $ROOT in the environment; use -R $ROOT to change another tree than /"
	fi
	[ "$(id -u)" = 0 ] || [ -n "$PCP_DIR" ] || fail "only root (uid 0) may change the configuration of pmcd"
	conf=$(readlink -f "$root$PCP_PMCDCONF_PATH") || fail "$root$PCP_PMCDCONF_PATH: not there"
	[ -f "$conf" ] || fail "$conf: not there"
	state=$root$PCP_PMDAS_DIR/pmdammv
	[ -d "$state" ] || fail "$state: not there"
	[ -n "$namespace" ] || namespace=$root${PMNS_DEFAULT:-$PCP_VAR_DIR/pmns/root}
	tmp=$(mktemp -d "$PCP_TMPFILE_DIR/pmdammv.XXXXXXXXX") || exit 1
	trap 'rm -rf "$tmp"; exit $status' 0
	trap 'status=1; exit 1' 1 2 3 15
}

# ask PROMPT DEFAULT: the answer is in $answer. At the end of the input, and so when run silently, it is the default.
ask() {
	printf '%s [%s] ' "$1" "$2"
	answer=''
	if read -r answer; then
		$echo && echo "$answer"
	else
		echo
	fi
	[ -n "$answer" ] || answer=$2
}

# entry LABEL: finds the entry in pmcd.conf. Its lines are $first to $last (0 when there is none), with their bytes
# in $tmp/entry; $domain is its number.
entry() {
	set -- "$1" "$(awk -v label="$1" '
		more { if (mine) last = NR; more = /\\$/; next }
		tolower($0) ~ /^[ \t]*\[[ \t]*access[ \t]*\]/ { exit }
		{ mine = $1 == label; more = $1 !~ /^#/ && /\\$/ }
		mine { n++; first = last = NR; domain = $2 }
		END { print n + 0, first + 0, last + 0, (domain ~ /^[0-9]+$/) ? domain : 0 }' "$conf")"
	label=$1
	# shellcheck disable=SC2086 # numbers
	set -- $2
	[ "$1" -le 1 ] || fail "$conf: more than one entry for $label"
	first=$2 last=$3 domain=$4
	if [ "$first" = 0 ]; then
		: >"$tmp/entry"
	else
		head -n "$last" "$conf" | tail -n "+$first" >"$tmp/entry"
	fi
}

# ours LABEL: after entry: whether it names this agent.
ours() {
	[ "$first" != 0 ] || return 1
	[ -f "$state/.$1.installed" ] && cmp -s "$tmp/entry" "$state/.$1.installed" && return 0
	awk -v a="$PCP_PMDAS_DIR/pmdammv/" -v b="$PCP_PMDASADM_DIR/pmdammv/" '
		{ for (i = 3; i <= NF; i++) if (index($i, a) == 1 || index($i, b) == 1) found = 1 }
		END { exit !found }' "$tmp/entry"
}

# replace FILE: puts FILE's bytes in the place of lines $first to $last of pmcd.conf; without such lines, before its
# first entry. Owner, mode and the like stay. The file as it was is in $tmp/before.
replace() {
	[ -f "$tmp/before" ] || cp -p "$conf" "$tmp/before" || fail "cannot save $conf"
	from=$first to=$((last + 1))
	if [ "$first" = 0 ]; then
		from=$(awk 'NF && $1 !~ /^#/ { n = NR; exit } END { print n ? n : 1 }' "$conf")
		to=$from
	fi
	{
		[ "$from" = 1 ] || head -n "$((from - 1))" "$conf"
		cat "$1"
		tail -n "+$to" "$conf" >"$tmp/rest"
		# What was the last line may lack an end, and no longer be the last.
		[ ! -s "$1" ] || [ ! -s "$tmp/rest" ] || [ -z "$(tail -c 1 "$1")" ] || echo
		cat "$tmp/rest"
	} >"$tmp/conf"
	put "$tmp/conf"
}

# put FILE: makes FILE's bytes pmcd.conf's, in one step.
put() {
	if cp -a "$conf" "$conf.pmdammv" && cat "$1" >"$conf.pmdammv" && mv -f "$conf.pmdammv" "$conf"; then
		return
	fi
	rm -f "$conf.pmdammv"
	fail "cannot write $conf"
}

# pmcd_pid: the number of the pmcd that answers here, or nothing.
pmcd_pid() {
	pmprobe -v pmcd.pid 2>/dev/null | awk '$2 == 1 { print $3 }'
}

# hangup: makes pmcd read its configuration; false when none answers.
hangup() {
	[ -z "$root" ] || return 1
	pid=$(pmcd_pid)
	[ -n "$pid" ] && kill -s HUP "$pid"
}

# value METRIC: whether pmcd has a value of it. Asking also makes pmcd heed a signal.
value() {
	pmprobe -v "$1" 2>/dev/null | awk '$2 >= 1 { ok = 1 } END { exit !ok }'
}

# await SECONDS COMMAND...: until the command succeeds.
await() {
	tries=$(($1 * 5))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.2
	done
}

not() {
	! "$@"
}

# systemd: whether it runs, and knows that unit.
systemd() {
	[ -z "$root" ] && [ -d /run/systemd/system ] && systemctl cat "$1" >/dev/null 2>&1
}

post() {
	[ -n "$root" ] || "$PCP_BINADM_DIR/pmpost" "$*" 2>/dev/null
}
