package check

import (
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// agentUser is the user that the agent runs as. A nil one can do everything.
type agentUser struct {
	name string
	uid  uint32
	gids []uint32
}

// findUser finds a user by name or number; nil is root.
func findUser(name string) (*agentUser, error) {
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		u = &user.User{Username: name, Uid: name, Gid: name} // as the agent takes numbers that are nobody's
	}
	id, err := strconv.ParseUint(u.Uid, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("no user %q", name)
	}
	if id == 0 {
		return nil, nil //nolint:nilnil // root
	}
	a := &agentUser{name: u.Username, uid: uint32(id)}
	groups, err := u.GroupIds()
	if err != nil {
		groups = []string{u.Gid}
	}
	for _, g := range groups {
		if id, err := strconv.ParseUint(g, 10, 32); err == nil {
			a.gids = append(a.gids, uint32(id))
		}
	}
	return a, nil
}

const canRead, canSearch = 4, 1

// may tells whether the mode of a file lets the user do that. Access control
// lists are not judged: they may let or forbid anything.
func (a *agentUser) may(path string, want uint32) (yes bool, st unix.Stat_t) {
	if a == nil || unix.Stat(path, &st) != nil {
		return true, st
	}
	if n, err := unix.Getxattr(path, "system.posix_acl_access", nil); err == nil && n > 0 {
		return true, st
	}
	bits := st.Mode
	switch {
	case st.Uid == a.uid:
		bits >>= 6
	case slices.Contains(a.gids, st.Gid):
		bits >>= 3
	}
	return bits&want == want, st
}

// file tells whether the agent's user can read a file.
func (a *agentUser) file(path string) []Finding {
	yes, st := a.may(path, canRead)
	if yes {
		return nil
	}
	return []Finding{fileFinding("permission", "user %s cannot read it: %s", a.name, owned(&st))}
}

// directory tells whether the agent's user can get at a directory.
func (a *agentUser) directory(path string) []Finding {
	full, err := filepath.EvalSymlinks(path)
	if err == nil {
		full, err = filepath.Abs(full)
	}
	if a == nil || err != nil {
		return nil
	}
	var out []Finding
	for i, c := range full {
		if c != '/' {
			continue
		}
		if yes, st := a.may(full[:i+1], canSearch); !yes {
			out = append(out, fileFinding("directory-access", "user %s cannot search %s: %s", a.name, full[:max(i, 1)], owned(&st)))
		}
	}
	if yes, st := a.may(strings.TrimSuffix(full, "/")+"/", canRead|canSearch); !yes {
		out = append(out, fileFinding("directory-access", "user %s cannot read %s: %s", a.name, full, owned(&st)))
	}
	return out
}

// owned is like "mode 0600, owner root, group root".
func owned(st *unix.Stat_t) string {
	name := func(id uint32, look func(string) (string, error)) string {
		s := strconv.FormatUint(uint64(id), 10)
		if n, err := look(s); err == nil {
			return n
		}
		return s
	}
	owner := name(st.Uid, func(s string) (string, error) {
		u, err := user.LookupId(s)
		if err != nil {
			return "", err
		}
		return u.Username, nil
	})
	group := name(st.Gid, func(s string) (string, error) {
		g, err := user.LookupGroupId(s)
		if err != nil {
			return "", err
		}
		return g.Name, nil
	})
	return fmt.Sprintf("mode %04o, owner %s, group %s", st.Mode&0o7777, owner, group)
}
