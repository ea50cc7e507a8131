#!/bin/bash
# packages.sh: what the instructions say, word by word, from packages; and that nothing is left of it at the end.
# /in has INSTALL.md, writer, and the packages old.deb, new.deb and new.rpm.
# shellcheck disable=SC2086,SC2317 # no path here has blanks; functions are called by check and within
# shellcheck source=test/boot/lib.sh
. /in/lib.sh

# What there is in the file system, but for what changes by itself.
list() {
	find /etc /opt /usr /var -xdev \( -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /var/cache -o -path /var/lib/rpm -o -path /var/lib/pcp/tmp -o -path '/var/lib/pcp/config/pmda/60.*' \
		-o -path /etc/systemd/system/multi-user.target.wants \) -prune -o \( -type d -printf '%M %u:%g %p\n' \) -o -printf '%M %u:%g %s %p %l\n'
	find /run/pmdammv /var/log/pcp/pmcd -name '*mmv*' -o -name '*pmproxy*' 2>/dev/null
	sha256sum $conf /var/lib/pcp/pmns/root
}

mkdir /packages
cp /in/old.deb "/packages/pmdammv_1_$(dpkg --print-architecture).deb"
systemctl start pmcd
within 20 "PCP's agent at first" theirs
writer
list | sort >/tmp/list.0
cp -p $conf /tmp/conf.0

check "package" follow INSTALL.md "From packages"
check "the package changes nothing" theirs
check "pmcd.conf after the package" cmp $conf /tmp/conf.0

check "pipe" follow INSTALL.md "Over a pipe"
within 1 "pipe: the program's metrics" program
agent=$(pgrep -x pmdammv)
check "pipe: user of the agent" test "$(ps -o user= -p "$agent")" = pcp
check "man" man -w 1mmv pmdammv
check "documents" ls /usr/share/doc/pmdammv/setting-up.md /usr/share/doc/pmdammv/TOOLS.md
check "man 5" man -w pmdammv-format
check "command" test "$(pmdammv --version | cut -d' ' -f1,2)" = "pmdammv version"
check "pmlogconf" grep -q 'mmv.control.file.status' <(pmlogconf -c -q /tmp/pmlogger.conf && cat /tmp/pmlogger.conf)

kill -9 "$agent"
while ps -o stat= -p "$agent" | grep -q '^[^Z]'; do sleep 0.01; done
hup
within 10 "pipe: agent killed, pmcd told" program
agent=$(pgrep -x pmdammv)

check "upgrade" dpkg -i /in/new.deb
check "upgrade: the agent goes on" test "$agent" = "$(pgrep -x pmdammv)"
check "upgrade: its metrics" program
systemctl restart pmcd
within 10 "pmcd started again over a pipe" program
check "upgrade: the new program" test "$(readlink "/proc/$(pgrep -x pmdammv)/exe")" = /usr/lib/pcp/pmdas/pmdammv/pmdammv

check "socket: enabled beforehand" systemctl enable --now pmdammv.socket
check "socket" follow INSTALL.md "Over a socket"
within 1 "socket: the program's metrics" program
check "socket: the service" systemctl -q is-active pmdammv.service
check "socket: enabled" systemctl -q is-enabled pmdammv.socket
agent=$(pid)
check "reinstall" dpkg -i /in/new.deb
check "reinstall: the service goes on" test "$agent" = "$(pid)"
check "man page of the service" systemctl help pmdammv

check "pipe again" /bin/sh -c "echo pipe | $here/Install"
within 1 "pipe again: the program's metrics" program
check "pipe again: no service is left" not systemctl is-active pmdammv.socket pmdammv.service
check "pipe again: nor will be" not systemctl is-enabled pmdammv.socket
check "pipe again: numbers are kept" not grep 'not kept' /var/log/pcp/pmcd/mmv.log
check "socket again" /bin/sh -c "echo socket | $here/Install"
within 1 "socket again: the program's metrics" program

follow INSTALL.md "Back to PCP's own agent" >/tmp/remove.out 2>&1
check "remove and purge" test $? = 0
cat /tmp/remove.out
within 10 "PCP's agent in the end" theirs
check "pmcd.conf in the end" cmp $conf /tmp/conf.0
list | sort >/tmp/list.1
check "nothing is left" diff /tmp/list.0 /tmp/list.1

# What the README says, all of it: both ways in, and out again.
follow README.md "Installing" >/tmp/readme.out 2>&1
check "README" test $? = 0
check "README: the program's metrics, twice" test "$(grep -A2 '^mmv.writer.count' /tmp/readme.out | grep -c 'value 7')" = 2
within 10 "PCP's agent after the README" theirs
check "pmcd.conf after the README" cmp $conf /tmp/conf.0
list | sort >/tmp/list.1
check "nothing is left after the README" diff /tmp/list.0 /tmp/list.1

# The package alone brings PCP's agent back, too. rpm and apt remove do the same.
check "package again" dpkg -i /in/new.deb
(cd $here && ./Install </dev/null >/dev/null)
check "installed again" program
check "package removed" dpkg -r pmdammv
within 10 "PCP's agent after the package's removal" theirs
check "pmcd.conf after the package's removal" cmp $conf /tmp/conf.0
check "numbers are kept" test -s /var/lib/pcp/config/pmda/mmv.70.identities
check "package purged" dpkg -P pmdammv
list | sort >/tmp/list.1
check "nothing is left, once more" diff /tmp/list.0 /tmp/list.1

# The same with rpm, which is a guest here: its packages need pcp, which it does not know.
if command -v rpm >/dev/null; then
	mkdir -p /usr/share/licenses /usr/libexec/pcp/pmdas # those of rpm, and of its pcp
	list | sort >/tmp/list.2
	check "rpm" rpm -i --nodeps /in/new.rpm
	(cd $here && ./Install </dev/null >/dev/null)
	check "rpm installed" program
	check "rpm upgraded to itself" rpm -U --force --nodeps /in/new.rpm
	check "rpm upgrade: its metrics" program
	check "rpm removed" rpm -e --nodeps pmdammv
	within 10 "PCP's agent after the rpm's removal" theirs
	check "pmcd.conf after the rpm's removal" cmp $conf /tmp/conf.0
	rm /var/lib/pcp/config/pmda/mmv.70.identities* /var/log/pcp/pmcd/mmv.log # rpm has no purge
	list | sort >/tmp/list.3
	check "nothing is left of the rpm" diff /tmp/list.2 /tmp/list.3
	rmdir -p /usr/share/licenses /usr/libexec/pcp/pmdas 2>/dev/null
else
	echo "skip rpm"
fi

# pmcd's start script installs and removes by itself, where it is told to.
dpkg -i /in/new.deb >/dev/null 2>&1
: >$here/.NeedInstall
systemctl restart pmcd
within 20 "installed by pmcd's start script" program
within 5 "the start script is done" test ! -e $here/.NeedInstall -a ! -e $here/.NeedInstall.pending
check "it did not fail" test ! -e $here/.NeedInstall.failed
: >$here/.NeedRemove
systemctl restart pmcd
within 20 "removed by pmcd's start script" theirs
within 5 "pmcd.conf after pmcd's start script" cmp $conf /tmp/conf.0
within 5 "the start script is done again" test ! -e $here/.NeedRemove.pending
mv /usr/lib/pcp/pmdas/pmdammv/pmdammv /tmp/away
: >$here/.NeedInstall
systemctl restart pmcd
within 20 "the start script is told of a failure" test -e $here/.NeedInstall.failed
check "pmcd.conf after a failure" cmp $conf /tmp/conf.0
check "PCP's agent after a failure" theirs
mv /tmp/away /usr/lib/pcp/pmdas/pmdammv/pmdammv
rm $here/.NeedInstall.failed
exit $failed
