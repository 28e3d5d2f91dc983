package localpg_test

import (
	"errors"
	"os"
	osexec "os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inContainer are the capabilities that Docker gives to root in a container.
var inContainer = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT, unix.CAP_MKNOD, unix.CAP_AUDIT_WRITE,
	unix.CAP_SETFCAP,
}

// TestAsRootInContainer runs those tests again that depend on what root may do with another user's processes and shared
// memory, with no other capabilities than in a container (capabilities(7), ptrace(2)).
func TestAsRootInContainer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user's servers run as that user: only root can lack the right to look at them")
	}
	// The bounding set is the thread's, and its children's. The thread ends with this goroutine, being never unlocked.
	runtime.LockOSThread()
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(inContainer, capability) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); !errors.Is(err, unix.EINVAL) { // the kernel does not know it
			noError(t, err)
		}
	}
	own, err := os.Executable()
	noError(t, err)
	again := []string{"TestKeepAndSweep", "TestRestartWithMemoryInUse", "TestKillLeavesNoMemory"}
	out, err := osexec.Command(own, "-test.v", "-test.run", "^("+strings.Join(again, "|")+")$").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range again {
		equal(t, name+" passes", strings.Contains(string(out), "--- PASS: "+name+" "), true)
	}
}
