#!/bin/bash
# pmcd.sh DIR PORT AGENT [OPTION...]: becomes a pmcd of its own, with that agent for MMV metrics on a pipe, or with PCP's
# shared object inside it if AGENT is dso.
#
# It listens on 127.0.0.1:PORT and on a socket in DIR, keeps everything in DIR, and touches nothing else of the machine. It stays in the
# foreground: whoever started it ends it, and so the agent, with SIGTERM. Clients and instrumented programs find it with
# PCP_CONF=DIR/etc/pcp.conf, PMCD_PORT=PORT; MMV files go to DIR/tmp/mmv. Root is not needed.
set -eu
dir=$1 port=$2
shift 2

mkdir -p "$dir"/{etc/labels,run,log/pmcd,tmp/mmv,tmpfile,var/pmns,var/config/pmda}
chmod 755 "$dir"
chmod 777 "$dir/log/pmcd" "$dir/var/config/pmda" # an agent that is started as root drops to PCP's user

conf=/etc/pcp.conf
at() { sed -n "s|^$1=||p" $conf; }
bin=$(at PCP_BINADM_DIR) pmdas=$(at PCP_PMDAS_DIR) pmns=$(at PCP_VAR_DIR)/pmns
sed -e "s|^PCP_SYSCONF_DIR=.*|PCP_SYSCONF_DIR=$dir/etc|" \
	-e "s|^PCP_PMCDCONF_PATH=.*|PCP_PMCDCONF_PATH=$dir/etc/pmcd.conf|" \
	-e "s|^PCP_PMCDOPTIONS_PATH=.*|PCP_PMCDOPTIONS_PATH=$dir/etc/pmcd.options|" \
	-e "s|^PCP_VAR_DIR=.*|PCP_VAR_DIR=$dir/var|" \
	-e "s|^PCP_RUN_DIR=.*|PCP_RUN_DIR=$dir/run|" \
	-e "s|^PCP_LOG_DIR=.*|PCP_LOG_DIR=$dir/log|" \
	-e "s|^PCP_TMP_DIR=.*|PCP_TMP_DIR=$dir/tmp|" \
	-e "s|^PCP_TMPFILE_DIR=.*|PCP_TMPFILE_DIR=$dir/tmpfile|" \
	$conf >"$dir/etc/pcp.conf"
agent="pipe binary $*"
[ "$1" != dso ] || agent="dso mmv_init $pmdas/mmv/pmda_mmv.so"
cat >"$dir/etc/pmcd.conf" <<EOF
pmcd 2 dso pmcd_init $pmdas/pmcd/pmda_pmcd.so
mmv 70 $agent

[access]
allow ".*" : all;
allow ":*" : all;
allow "local:*" : all;
EOF

# Some of PCP's programs take settings from the environment before pcp.conf.
for v in $(compgen -e PCP_) $(compgen -e PMCD_); do unset "$v"; done
export PCP_CONF=$dir/etc/pcp.conf

[ -e "$dir/var/pmns/root" ] || "$bin/pmnsmerge" -f "$pmns/root_pmcd" "$pmns/root_mmv" "$dir/var/pmns/root"
cd "$dir/log/pmcd"
exec "$bin/pmcd" -f -A -i 127.0.0.1 -p "$port" -s "$dir/run/pmcd.socket" -U "$(id -un)" -c "$dir/etc/pmcd.conf" \
	-l "$dir/log/pmcd/pmcd.log" -x "$dir/log/pmcd/pmcd.err" </dev/null >"$dir/log/pmcd/stdout" 2>&1
