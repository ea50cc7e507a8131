package main

import (
	"os"
	"path/filepath"
	"strings"
)

// config is PCP's configuration: the environment, then pcp.conf, then defaults.
type config struct{ file map[string]string }

var configDefaults = map[string]string{
	"PCP_TMP_DIR": "/var/lib/pcp/tmp",
	"PCP_VAR_DIR": "/var/lib/pcp",
	"PCP_USER":    "pcp",
	"PCP_GROUP":   "pcp",
	"PCP_VERSION": "7",
}

// readConfig reads $PCP_CONF or /etc/pcp.conf; a missing one is no error.
func readConfig() config {
	c := config{file: map[string]string{}}
	path := os.Getenv("PCP_CONF")
	if path == "" {
		path = filepath.Join(os.Getenv("PCP_DIR"), "/etc/pcp.conf")
	}
	text, _ := os.ReadFile(path) //nolint:gosec // the configuration's own way to say where it is
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		c.file[strings.TrimSpace(key)] = value
	}
	return c
}

func (c config) get(key string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	if v := c.file[key]; v != "" {
		return v
	}
	return configDefaults[key]
}
