package pgtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// NeedDocker skips a test where Docker or an image is missing, unless Docker is asked for or this is CI.
func NeedDocker(t testing.TB, image string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("KILOSHARD_TEST_POSTGRES") == "docker" {
		return
	}
	if out, err := exec.Command("docker", "image", "inspect", image).CombinedOutput(); err != nil {
		t.Skipf("Docker with the image %s is needed: %v %s", image, err, strings.TrimSpace(string(out)))
	}
}

// Docker runs a command of Docker and returns what it prints.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// DockerAtEnd runs a command of Docker when the test ends.
func DockerAtEnd(t testing.TB, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
			t.Errorf("docker %s: %v: %s", args[0], err, out)
		}
	})
}
