#!/bin/bash
# before-lifecycle.sh: before systemd runs: the agent is installed as a service, to be there at the boot.
. /in/lib.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
dpkg -i /in/old.deb >/dev/null
systemctl -q enable pmdammv.socket
check "Install into a tree" /bin/sh -c "echo socket | $here/Install -R /"
ln -s /lib/systemd/system/pmcd.service /etc/systemd/system/multi-user.target.wants/
