package pmda_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(agentEnv) != "" {
		os.Exit(runSampleAgent())
	}
	goleak.VerifyTestMain(m)
}
