#!/bin/bash
# before-lifecycle.sh: before systemd runs: the agent is installed as a service, to be there at the boot.
# shellcheck disable=SC2086,SC2317 # no path here has blanks; functions are called by check and within
# shellcheck source=test/boot/lib.sh
. /in/lib.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
dpkg -i /in/old.deb >/dev/null
systemctl -q enable pmdammv.socket
check "Install into a tree" /bin/sh -c "echo socket | $here/Install -R /"
ln -s /lib/systemd/system/pmcd.service /etc/systemd/system/multi-user.target.wants/
