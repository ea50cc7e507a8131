#!/bin/bash
# lifecycle.sh: the agent as a service: it and pmcd start, stop, crash and are upgraded in any order.
# /in has writer and the package new.deb; the older one is installed, and the machine has booted with it.
. /in/lib.sh

writer
within 20 "boot: the program's metrics" program
starts() { systemctl show -P "${2:-ActiveEnterTimestampMonotonic}" "$1"; }
check "boot: the socket is there before pmcd" test "$(starts pmdammv.socket)" -lt "$(starts pmcd.service InactiveExitTimestampMonotonic)"
check "boot: no unit failed" test "$(systemctl --failed --no-legend 'pm*')" = ""
check "socket's directory" test "$(stat -c '%U:%G %a' /run/pmdammv)" = "root:root 755"
check "socket" test "$(stat -c '%U:%G %a' $socket)" = "root:pcp 660"
check "user" test "$(ps -o user=,group= -p "$(pid)" | tr -s ' ')" = "pcp pcp"
for f in /proc/"$(pid)"/task/*/status; do
	grep -q '^CapPrm:.0*$' "$f" && grep -q '^CapBnd:.0*$' "$f" && grep -q '^NoNewPrivs:.1$' "$f" && grep -q '^Seccomp:.2$' "$f" || echo "$f"
done >/tmp/privileged
check "no thread has privileges" test ! -s /tmp/privileged
check "numbers are kept" test "$(stat -c '%U:%G %a' /var/lib/pcp/config/pmda/mmv.70.identities)" = "pcp:pcp 644"
check "the status says where it listens" systemctl show -P StatusText pmdammv --value
pmid() { pminfo -m mmv.writer | sort; }
pmid >/tmp/pmid

# Clients that look all the time.
pmval -t 0.2 -f 1 mmv.writer.count >/tmp/pmval.out 2>&1 &
pmval=$!
echo 'log mandatory on 200 msec { mmv.writer }' >/tmp/pmlogger.conf
pmlogger -c /tmp/pmlogger.conf -l /tmp/pmlogger.log /tmp/archive &
pmlogger=$!
values() { grep -c '7$\|0\.0$\|^ *0$' /tmp/pmval.out; }
samples() { pmval -a /tmp/archive -t 0.2 mmv.writer.count 2>/dev/null | grep -c ':'; }
# more NAME: whether both have got values since the last call.
more() {
	local size=$(stat -c %s /tmp/archive.0 2>/dev/null)
	within 10 "$1: pmval has more" test "$(values)" -gt 0
	within 10 "$1: pmlogger has more" /bin/sh -c "[ \$(stat -c %s /tmp/archive.0) -gt ${size:-0} ]"
	check "$1: pmval runs" kill -0 $pmval
	check "$1: pmlogger runs" kill -0 $pmlogger
	check "$1: the same numbers" cmp /tmp/pmid <(pmid)
}
more "at first"

# The agent goes. pmcd looks for it again at once when it has not done so for a minute, or when it is told to.
gone() {
	within 75 "$1" program
	more "$1"
}
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
kill -s TERM "$(pid)"
hup
gone "agent ended by a signal"
systemctl reload pmdammv
gone "agent reloaded"
check "agent reloaded: the same one" journalctl -u pmdammv -n 1 -o cat

# pmcd goes; the agent stays.
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
within 10 "path removed: it is made again" test -S $socket
hup
gone "path removed"

# An upgrade, and the new program when it suits.
old=$(pid)
check "upgrade" dpkg -i /in/new.deb
check "upgrade: the old one goes on" test "$old" = "$(pid)"
program
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
printf '[Service]\nWatchdogSec=1s\n' >/etc/systemd/system/pmdammv.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart pmdammv
old=$(pid)
until [ "$(systemctl show -P WatchdogTimestampMonotonic pmdammv)" -gt $(($(starts pmdammv) + 2000000)) ]; do sleep 0.1; done
check "watchdog: the agent feeds it" test "$old" = "$(pid)"
kill -s STOP "$old"
within 10 "watchdog: another agent after one that hangs" /bin/sh -c "[ \$(systemctl show -P MainPID pmdammv) != $old ] && systemctl -q is-active pmdammv"

check "stop" systemctl stop pmdammv.socket pmdammv.service
check "stop: the status is 0" test "$(systemctl show -P Result pmdammv.service)" = success
check "stop: the socket is gone" test ! -e $socket
exit $failed
