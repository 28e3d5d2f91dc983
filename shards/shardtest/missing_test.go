package shardtest_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// failing is a test whose call of Fatal another test observes.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatal(args ...any) {
	f.said = fmt.Sprint(args...)
	runtime.Goexit()
}

// The error for a missing directory of migrations contains its name, although the errors of os.DirFS do not.
func TestMissingDirectory(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shardtest.New(f, shardtest.Config{Migrations: os.DirFS("../no/migrations")})
	}()
	<-done
	if !strings.Contains(f.said, "Config.Migrations ../no/migrations: ") || !strings.Contains(f.said, "expected a directory of migrations") {
		t.Errorf("it says %q, expected the directory's name", f.said)
	}
}
