package router_test

import (
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/routertest"
)

func TestMain(m *testing.M) {
	os.Exit(routertest.Main(m, map[string]string{"max_prepared_transactions": "10"}, stopReplicated))
}
