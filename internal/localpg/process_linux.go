package localpg

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tie makes the kernel send SIGQUIT to a child when the thread that started it ends. To Postgres that is an immediate
// shutdown: as quick as SIGKILL, but its children end as well and no shared memory is left.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// status returns the state and the parent of a process, from /proc/<pid>/stat (proc_pid_stat(5)).
func status(pid int) (state byte, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name, which is in parentheses, may itself have any character in it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err == nil
}

func children(parent int) []int {
	return processes(func(pid int) bool {
		_, p, ok := status(pid)
		return ok && p == parent
	})
}

// group returns the processes of a process group.
func group(leader int) []int {
	return processes(func(pid int) bool {
		id, err := syscall.Getpgid(pid)
		return err == nil && id == leader
	})
}

// processes returns those for which wanted holds.
func processes(wanted func(pid int) bool) []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && wanted(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive says whether a process is there that has not ended.
func alive(pid int) bool {
	state, _, ok := status(pid)
	return ok && state != 'Z' && state != 'X'
}

// stopped says whether a process does nothing any more: it has been stopped, or has ended.
func stopped(pid int) bool {
	state, _, ok := status(pid)
	return !ok || state == 'T' || state == 't' || state == 'Z' || state == 'X'
}

// startedOn says whether the process is known to be a server that was started on the data directory.
func startedOn(pid int, data string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(args, []byte("\x00-D\x00"+data+"\x00"))
}

// segment is the ID of System V shared memory, which outlives the processes that had it. Postgres removes it in an orderly
// shutdown, or when it is started again.
type segment int

var sysvSegment = regexp.MustCompile(`(?m) (\d+) +/SYSV[0-9a-f]{8} \(deleted\)$`)

// segments returns the shared memory that the processes of a server have, from /proc/<pid>/maps (proc_pid_maps(5)). The
// error says that it is not known.
func segments(pids []int, user identity) ([]segment, error) {
	maps, err := readMaps(pids, user)
	if err != nil {
		return nil, fmt.Errorf("shared memory of processes %d: %w", pids, err)
	}
	var found []segment
	for _, match := range sysvSegment.FindAllSubmatch(maps, -1) {
		if id, err := strconv.Atoi(string(match[1])); err == nil {
			found = append(found, segment(id))
		}
	}
	return found, nil
}

// readMaps reads the maps of the processes as the user that they run as: root may read what belongs to others only
// with CAP_SYS_PTRACE, which a container does not have. A process that has ended has none.
func readMaps(pids []int, user identity) ([]byte, error) {
	if len(pids) == 0 {
		return nil, nil
	}
	cmd := exec.Command("/bin/cat")
	for _, pid := range pids {
		cmd.Args = append(cmd.Args, fmt.Sprintf("/proc/%d/maps", pid))
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	maps, err := user.asUser(cmd).Output()
	if err != nil && len(maps) == 0 && slices.ContainsFunc(pids, alive) {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return maps, nil
}

// remove removes what a server of the user has left.
func (s segment) remove(user identity) error {
	_, err := unix.SysvShmCtl(int(s), unix.IPC_RMID, nil)
	if errors.Is(err, unix.EPERM) { // root removes what belongs to others only with CAP_SYS_ADMIN
		err = user.asUser(exec.Command("ipcrm", "--shmem-id", strconv.Itoa(int(s)))).Run()
	}
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("shared memory segment %d: %w", int(s), err)
	}
	return nil
}
