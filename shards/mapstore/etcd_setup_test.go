package mapstore_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localetcd"
)

// roleVariable names the role of a copy of this test binary that does not run the tests.
const roleVariable = "MAPSTORE_TEST_ROLE"

// play plays a role, and returns the exit code.
func play(role string) int {
	err := fmt.Errorf("no such role: %s", role)
	switch role {
	case "etcd":
		err = localetcd.Serve(context.Background(), os.Stdin, os.Stdout)
	case "file":
		err = serveFile(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// etcdCommand is a copy of this test binary that runs an etcd.
func etcdCommand() (command, env []string) {
	return []string{os.Args[0]}, []string{roleVariable + "=etcd"}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// metric reads one of the server's metrics.
func metric(t *testing.T, server *localetcd.Server, name string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Endpoint()+"/metrics", nil)
	noError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	noError(t, err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	t.Fatalf("no metric %s", name)
	return ""
}
