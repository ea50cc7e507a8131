package main

import (
	"context"
	"errors"
	"os/user"
	"strconv"
	"strings"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pmda"
)

// listeners are the sockets to serve: those that systemd passes and those of
// the options. None means the pipe. Root makes them before it gives up its
// privileges.
func (o *options) listeners(cfg config) (all []*pmda.Listener, err error) {
	add := func(l *pmda.Listener, err1 error) {
		if err1 == nil {
			all = append(all, l)
		}
		err = errors.Join(err, err1)
	}
	for _, f := range passedFiles() {
		add(pmda.NewListener(f))
	}
	if o.unix != "" {
		add(pmda.ListenUnix(o.unix, groupID(cfg.get("PCP_GROUP"))))
	}
	if o.inet != "" {
		add(pmda.ListenInet(o.inet, false))
	}
	if o.ipv6 != "" {
		add(pmda.ListenInet(o.ipv6, true))
	}
	if err != nil {
		closeAll(all)
		return nil, err
	}
	return all, nil
}

func closeAll(all []*pmda.Listener) {
	for _, l := range all {
		_ = l.Close() // nothing is lost
	}
}

// serveSockets accepts pmcd's connections until ctx is cancelled. A connection
// is greeted before the first look at the directory, which can take longer
// than pmcd waits.
func serveSockets(ctx context.Context, agent *pmda.Agent, exp *exporter.Exporter, m manager, users []int, all []*pmda.Listener) error {
	done := make(chan error, 1)
	go func() { done <- agent.ServeAll(ctx, users, all...) }()
	exp.Refresh()
	addrs := make([]string, len(all))
	for i, l := range all {
		addrs[i] = l.Addr()
	}
	m.tell("READY=1", "STATUS=serving "+strings.Join(addrs, " "))
	go m.watchdog(ctx, exp.Refresh)
	err := <-done
	m.tell("STOPPING=1")
	return err
}

// pmcdUsers are the users, besides root and the agent's own, as which pmcd may run.
func pmcdUsers(pcpUser string) []int {
	u, err := user.Lookup(pcpUser)
	if err != nil {
		return nil
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil
	}
	return []int{uid}
}

// groupID is -1 for a group that does not exist.
func groupID(name string) int {
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return -1
	}
	return gid
}
