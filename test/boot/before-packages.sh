#!/bin/bash
# before-packages.sh: before systemd runs: the packages come and go where it does not.
# shellcheck disable=SC2086,SC2317 # no path here has blanks; functions are called by check and within
# shellcheck source=test/boot/lib.sh
. /in/lib.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
check "package without systemd" dpkg -i /in/old.deb
check "upgrade without systemd" dpkg -i /in/new.deb
check "purge without systemd" dpkg -P pmdammv
check "nothing is left without systemd" test "$(find /etc /usr /var /run -name '*pmdammv*' -not -path '*/pmdas/mmv/*' -not -path '*/man1/pmdammv.1.gz')" = ""
