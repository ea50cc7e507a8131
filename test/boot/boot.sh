#!/bin/bash
# boot.sh DIR SCRIPT: boots systemd in a copy of this machine that is thrown away, and runs SCRIPT there, as a service.
#
# The copy has mount, process, network, ipc, uts and cgroup namespaces of its own; what it writes goes to memory. There is
# no network but loopback. DIR is /in there, read-only, and SCRIPT a file in it; an executable DIR/before-boot runs in the
# copy before systemd starts. The script's output goes to standard output, its status is this script's. Needs root,
# systemd and unshare; 77 means that this machine cannot do it. SECONDS_MAX bounds the whole (420); BOOT_LOG is a file for systemd's
# own log.
#
# The script runs before multi-user.target is reached, so it must not wait for units that come after that.
set -eu
if [ "$1" != --inside ]; then
	dir=$(readlink -f "$1")
	if [ "$(id -u)" != 0 ] || [ ! -x /lib/systemd/systemd ] || ! unshare --mount --pid --net --ipc --uts --cgroup --fork true 2>/dev/null; then
		echo "boot.sh: needs root, systemd and namespaces" >&2
		exit 77
	fi
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	mkdir "$work/root" "$work/out"
	timeout -k 5 "${SECONDS_MAX:-420}" unshare --mount --pid --net --ipc --uts --cgroup --fork --kill-child --propagation private \
		"$(readlink -f "$0")" --inside "$work" "$dir" "$2" >"$work/log" 2>&1 </dev/null || true
	[ -z "${BOOT_LOG:-}" ] || cp "$work/log" "$BOOT_LOG"
	cat "$work/out/before" "$work/out/output" 2>/dev/null || true
	if [ ! -s "$work/out/status" ]; then
		echo "boot.sh: the script did not end; the end of systemd's log:" >&2
		tail -n 30 "$work/log" >&2
		exit 99
	fi
	exit "$(cat "$work/out/status")"
fi

work=$2 in=$3 script=$4
mount -t tmpfs -o mode=755,size=3g tmpfs "$work/root"
cd "$work/root"
mkdir upper work root
mount -t overlay -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work" overlay root
cd root

# What a container manager gives systemd.
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys 2>/dev/null || mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/unified sys/fs/cgroup/systemd
mount -t cgroup2 cgroup2 sys/fs/cgroup/unified 2>/dev/null || true
mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom tty; do
	: >dev/$d
	mount --bind /dev/$d dev/$d
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for n in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${n%:*}" "dev/${n#*:}"; done
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=1777 tmpfs var/tmp
mkdir -p in out
mount --bind "$work/out" out
mount --bind "$in" in
mount -o remount,bind,ro in

units=etc/systemd/system
cat >$units/boot-test.service <<END
[Unit]
After=basic.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WorkingDirectory=/tmp
ExecStart=/bin/sh -c '/in/$script >/out/output 2>&1 </dev/null; echo \$? >/out/status; exec systemctl poweroff --force --force'
END
rm -rf $units/multi-user.target.wants $units/default.target
mkdir $units/multi-user.target.wants
ln -s ../boot-test.service $units/multi-user.target.wants
ln -s /lib/systemd/system/multi-user.target $units/default.target
for u in systemd-udevd systemd-udev-trigger systemd-networkd systemd-resolved systemd-timesyncd getty@tty1 console-getty ssh cron; do
	ln -sf /dev/null $units/$u.service
done
clean=(env -i container=boot-test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot .)
[ ! -x in/before-boot ] || "${clean[@]}" /in/before-boot >out/before 2>&1
exec "${clean[@]}" /lib/systemd/systemd --system --log-target=console
