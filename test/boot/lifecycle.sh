#!/bin/bash
# lifecycle.sh: the agent as a service: it and pmcd start, stop, crash and are upgraded in any order.
# /in has writer and the package new.deb; the older one is installed, and the machine has booted with it.
# shellcheck disable=SC2086,SC2317 # no path here has blanks; functions are called by check and within
# shellcheck source=test/boot/lib.sh
. /in/lib.sh

writer
within 20 "boot: the program's metrics" program
starts() { systemctl show -P "${2:-ActiveEnterTimestampMonotonic}" "$1"; }
check "boot: the socket is there before pmcd" test "$(starts pmdammv.socket)" -lt "$(starts pmcd.service InactiveExitTimestampMonotonic)"
check "boot: no unit failed" test "$(systemctl list-units --failed --no-legend 'pm*')" = ""
check "socket's directory" test "$(stat -c '%U:%G %a' /run/pmdammv)" = "root:root 755"
check "socket" test "$(stat -c '%U:%G %a' $socket)" = "root:pcp 660"
check "user" test "$(ps -o user=,group= -p "$(pid)" | tr -s ' ')" = "pcp pcp"
for f in /proc/"$(pid)"/task/*/status; do
	grep -q '^CapPrm:.0*$' "$f" && grep -q '^CapBnd:.0*$' "$f" && grep -q '^NoNewPrivs:.1$' "$f" && grep -q '^Seccomp:.2$' "$f" || echo "$f"
done >/tmp/privileged
check "no thread has privileges" test ! -s /tmp/privileged
check "numbers are kept" test "$(stat -c '%U:%G %a' /var/lib/pcp/config/pmda/mmv.70.identities)" = "pcp:pcp 644"
check "the status says where it listens" test "$(systemctl show -P StatusText pmdammv)" = "serving $socket"
pmid() { pminfo -m mmv.writer | sort; }
pmid >/tmp/pmid

# Clients that look all the time.
pmval -r -t 0.2 mmv.writer.count >/tmp/pmval.out 2>&1 &
pmval=$!
echo 'log mandatory on 200 msec { mmv.writer }' >/tmp/pmlogger.conf
pmlogger -c /tmp/pmlogger.conf -l /tmp/pmlogger.log /tmp/archive &
pmlogger=$!
values() { grep -c ' 7 *$' /tmp/pmval.out; }
size() { stat -c %s /tmp/archive.0; }
more() { [ "$($1)" -gt "$2" ]; }
# clients NAME: whether they go on, and get values.
clients() {
	local had
	if [ -n "$pmval" ]; then
		had=$(values)
		within 10 "$1: pmval has more" more values "$had"
		check "$1: pmval runs" kill -0 $pmval
	fi
	had=$(size)
	within 10 "$1: pmlogger has more" more size "$had"
	check "$1: pmlogger runs" kill -0 $pmlogger
	check "$1: the same numbers" cmp /tmp/pmid <(pmid)
}
within 10 "an archive" test -s /tmp/archive.0
clients "at first"

# The agent goes. pmcd looks for it again at once when it has not done so for a minute, or when it is told to.
gone() {
	within 75 "$1" program
	clients "$1"
}
# ended PID: waits for the end of an agent; pmcd told before that would not see it.
ended() { while kill -0 "$1" 2>/dev/null; do sleep 0.01; done; }
old=$(pid)
kill -9 "$old"
gone "agent killed"
check "agent killed: another one" test "$old" != "$(pid)"
systemctl restart pmdammv
hup
gone "agent restarted, pmcd told"
systemctl stop pmdammv
hup
gone "agent stopped: pmcd starts it by connecting"
old=$(pid)
kill -s TERM "$old"
ended "$old"
hup
gone "agent ended by a signal, pmcd told"
old=$(pid)
systemctl reload pmdammv
gone "agent reloaded"
check "agent reloaded: the same one" test "$old" = "$(pid)"

# pmcd goes; the agent stays. pmval ends with pmcd.
kill $pmval
pmval=''
old=$(pid)
systemctl restart pmcd
gone "pmcd restarted"
systemctl stop pmcd
check "pmcd stopped: the agent goes on" test "$old" = "$(pid)"
check "pmcd stopped: so does its socket" test -S $socket
systemctl start pmcd
gone "pmcd started"
kill -9 "$(cat /run/pcp/pmcd.pid)"
gone "pmcd killed"
check "the agent was the same all the time" test "$old" = "$(pid)"

# The path goes, as with a pmcd that runs as root.
rm $socket
made() { [ "$(stat -c '%U:%G %a' $socket)" = "root:pcp 660" ]; }
within 10 "path removed: it is made again" made
hup
gone "path removed"

# An upgrade, and the new program when it suits.
old=$(pid)
check "upgrade" dpkg -i /in/new.deb
check "upgrade: the old one goes on" test "$old" = "$(pid)"
systemctl restart pmdammv
hup
gone "upgrade: the new one"
check "upgrade: it is the new one" cmp "/proc/$(pid)/exe" /usr/lib/pcp/pmdas/pmdammv/pmdammv

# PCP's own scripts end every process called pmdammv.
(cd /var/lib/pcp/pmdas/mmv && ./Install </dev/null >/tmp/theirs.out 2>&1)
within 10 "PCP's Install" theirs
within 10 "PCP's Install: the service goes on" systemctl -q is-active pmdammv.service
check "PCP's Install: its socket too" test -S $socket
(cd /var/lib/pcp/pmdas/mmv && ./Remove </dev/null >/tmp/theirs.out 2>&1)
within 10 "PCP's Remove" not pminfo mmv.control
within 10 "PCP's Remove: the service goes on" systemctl -q is-active pmdammv.service
check "and Install again" /bin/sh -c "echo socket | $here/Install"
within 1 "installed again" program

# The journal has levels.
echo junk >/var/lib/pcp/tmp/mmv/bad-name
pminfo mmv >/dev/null
levels() { journalctl -u pmdammv -o json --no-pager | grep "$1" | grep -q "\"PRIORITY\":\"$2\""; }
within 5 "journal: information" levels 'metrics in' 6
within 5 "journal: a warning" levels bad-name 4

# The watchdog, and an agent that hangs.
mkdir -p /etc/systemd/system/pmdammv.service.d
printf '[Service]\nWatchdogSec=4s\n' >/etc/systemd/system/pmdammv.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart pmdammv
old=$(pid)
until [ "$(systemctl show -P WatchdogTimestampMonotonic pmdammv)" -gt $(($(starts pmdammv) + 2000000)) ]; do sleep 0.1; done
check "watchdog: the agent feeds it" test "$old" = "$(pid)"
kill -s STOP "$old"
within 20 "watchdog: another agent after one that hangs" /bin/sh -c "[ \$(systemctl show -P MainPID pmdammv) != $old ] && systemctl -q is-active pmdammv"

# A wrong option is said once, and not again and again.
printf '[Service]\nExecStart=\nExecStart=/var/lib/pcp/pmdas/pmdammv/pmdammv --file-metric=all\n' >/etc/systemd/system/pmdammv.service.d/options.conf
systemctl daemon-reload
systemctl restart pmdammv
within 10 "wrong option: the service has failed" systemctl -q is-failed pmdammv.service
check "wrong option: its status" test "$(systemctl show -P ExecMainStatus pmdammv.service)" = 64
rm /etc/systemd/system/pmdammv.service.d/options.conf
systemctl daemon-reload
check "wrong option: mended" systemctl restart pmdammv.socket pmdammv.service

check "stop" systemctl stop pmdammv.socket pmdammv.service
check "stop: the status is 0" test "$(systemctl show -P Result pmdammv.service)" = success
check "stop: the socket is gone" test ! -e $socket
exit $failed
