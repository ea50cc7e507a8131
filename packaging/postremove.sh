#!/bin/sh
# After the files have gone. A purge, which only deb knows, takes the numbers and the logs as well.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
case "$1" in
remove | 0)
	rmdir /run/pmdammv 2>/dev/null || true
	;;
purge)
	rm -f /var/lib/pcp/config/pmda/mmv.70.identities* /var/lib/pcp/config/pmda/pmproxy.4.identities*
	rm -f /var/log/pcp/pmcd/mmv.log /var/log/pcp/pmcd/mmv.log.prev
	rm -f /var/log/pcp/pmcd/pmproxy.log /var/log/pcp/pmcd/pmproxy.log.prev
	rm -rf /var/lib/pcp/pmdas/pmdammv
	;;
esac
