#!/bin/sh
# install.sh: copies the agent and what belongs to it into the places where PCP and systemd look; with -u it takes all of
# it away again. It changes no configuration: that is done by Install, which it puts beside the agent.
#
# It runs in the source tree, where the program is bin/pmdammv, or in the unpacked archive. From the environment: DESTDIR, a
# tree other than /; PREFIX (/usr/local), for the manual pages and the command; PMDASADM and PMDAS, PCP's directories of
# agents (from pcp.conf); UNITS, systemd's of units; CONFIG, PCP's of configuration; BINARY, the program.
set -eu
cd "$(dirname "$0")"
[ -d configs ] || cd ..

uninstall=false
case "${1:-}" in
'') ;;
-u) uninstall=true ;;
*)
	sed -n '2,/^set/{/^#/s/^# //p}' "$0"
	exit 2
	;;
esac

at() { sed -n "s|^$1=||p" "${PCP_CONF:-/etc/pcp.conf}" 2>/dev/null; }
: "${DESTDIR=}" "${PREFIX=/usr/local}" "${UNITS=$(at PCP_SYSTEMDUNIT_DIR)}"
: "${PMDASADM=$(at PCP_PMDASADM_DIR)}" "${PMDAS=$(at PCP_PMDAS_DIR)}" "${CONFIG=$(at PCP_SYSCONF_DIR)}"
: "${LOGCONF=$(dirname "$PMDAS")/config/pmlogconf}" "${UNITS:=/usr/lib/systemd/system}"
if [ -z "$PMDASADM" ] || [ -z "$PMDAS" ] || [ -z "$CONFIG" ]; then
	echo "install.sh: no pcp.conf: is PCP installed? Else give PMDASADM, PMDAS and CONFIG" >&2
	exit 1
fi
[ -n "${BINARY:-}" ] || for BINARY in bin/pmdammv pmdammv; do [ ! -f $BINARY ] || break; done
adm=$PMDASADM/pmdammv here=$PMDAS/pmdammv
if $uninstall && [ -n "$(find "$DESTDIR$here" -name '.*.installed' 2>/dev/null)" ]; then
	echo "install.sh: pmcd uses the agent: run $here/Remove first" >&2
	exit 1
fi
# PCP has a pmdammv(1) too. Under /usr/local this one comes first; beside PCP's it needs a suffix.
case $PREFIX in
/usr) section=1mmv ;;
*) section=1 ;;
esac

# put MODE SOURCE PATH: a file, with our directories in it.
put() {
	if $uninstall; then
		rm -f "$DESTDIR$3"
	else
		mkdir -p "$DESTDIR${3%/*}"
		rm -f "$DESTDIR$3"
		case $2 in
		"$BINARY") cp "$2" "$DESTDIR$3" ;;
		*) sed -e "s|@PMDASADM@|$PMDASADM|g" -e "s|@PMDAS@|$PMDAS|g" -e "s|@SECTION@|$section|g" "$2" >"$DESTDIR$3" ;;
		esac
		chmod "$1" "$DESTDIR$3"
	fi
}

# link TARGET PATH: a symbolic link.
link() {
	if $uninstall; then
		rm -f "$DESTDIR$2"
	else
		mkdir -p "$DESTDIR${2%/*}"
		ln -sfn "$1" "$DESTDIR$2"
	fi
}

put 755 "$BINARY" "$adm/pmdammv"
link pmdammv "$adm/pmdapmproxy"
for f in Install Remove; do put 755 configs/$f "$adm/$f"; done
for f in common.sh root_mmv root_pmproxy pmcd.conf; do put 644 configs/$f "$adm/$f"; done
for f in pmdammv pmdapmproxy Install Remove common.sh root_mmv root_pmproxy; do link "$adm/$f" "$here/$f"; done
case $adm in
/usr/*) [ "$PREFIX" != /usr ] || command=..${adm#/usr}/pmdammv ;;
esac
link "${command:-$adm/pmdammv}" "$PREFIX/bin/pmdammv"
for f in pmdammv.service pmdammv.socket; do put 644 systemd/$f "$UNITS/$f"; done
put 644 configs/pmlogconf/files "$CONFIG/pmlogconf/pmdammv/files"
link "$CONFIG/pmlogconf/pmdammv/files" "$LOGCONF/pmdammv/files"
put 644 configs/man/pmdammv.1 "$PREFIX/share/man/man1/pmdammv.$section"
put 644 configs/man/pmdammv-format.5 "$PREFIX/share/man/man5/pmdammv-format.5"
if $uninstall; then
	for d in "$adm" "$here" "$CONFIG/pmlogconf/pmdammv" "$LOGCONF/pmdammv"; do
		rmdir "$DESTDIR$d" 2>/dev/null || true # others may have put something there
	done
fi
