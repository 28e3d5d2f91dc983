package process

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

// tie makes the kernel send SIGQUIT to a child when the thread that started it ends. Postgres then shuts down immediately: as
// quickly as with SIGKILL, but its children end too and no shared memory is left.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// status returns the state and the parent of a process, from /proc/<pid>/stat (proc_pid_stat(5)).
func status(pid int) (state byte, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name, in parentheses, may contain any character.
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

// processes returns the processes for which wanted is true.
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

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	state, _, ok := status(pid)
	return ok && state != 'Z' && state != 'X'
}

// stopped reports whether a process has stopped or ended.
func stopped(pid int) bool {
	state, _, ok := status(pid)
	return !ok || state == 'T' || state == 't' || state == 'Z' || state == 'X'
}

// StartedOn reports whether a process is known to be a server that was started on the data directory.
func StartedOn(pid int, data string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(args, []byte("\x00-D\x00"+data+"\x00"))
}

// Segment is the ID of System V shared memory, which outlives its processes. Postgres removes it when it shuts down in good
// order, or when it starts again.
type Segment int

var sysvSegment = regexp.MustCompile(`(?m) (\d+) +/SYSV[0-9a-f]{8} \(deleted\)$`)

// segments returns the shared memory of a server's processes, from /proc/<pid>/maps (proc_pid_maps(5)).
func segments(pids []int, user User) ([]Segment, error) {
	maps, err := readMaps(pids, user)
	if err != nil {
		return nil, fmt.Errorf("shared memory of processes %d: %w", pids, err)
	}
	var found []Segment
	for _, match := range sysvSegment.FindAllSubmatch(maps, -1) {
		if id, err := strconv.Atoi(string(match[1])); err == nil {
			found = append(found, Segment(id))
		}
	}
	return found, nil
}

// readMaps reads the maps of processes as the user that they run as: root needs CAP_SYS_PTRACE to read those of other users,
// and lacks it in a container. A process that has ended has none.
func readMaps(pids []int, user User) ([]byte, error) {
	if len(pids) == 0 {
		return nil, nil
	}
	cmd := exec.Command("/bin/cat")
	for _, pid := range pids {
		cmd.Args = append(cmd.Args, fmt.Sprintf("/proc/%d/maps", pid))
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	maps, err := user.command(cmd).Output()
	if err != nil && len(maps) == 0 && slices.ContainsFunc(pids, alive) {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return maps, nil
}

// Remove removes the segment of a server that ran as the user.
func (s Segment) Remove(user User) error {
	_, err := unix.SysvShmCtl(int(s), unix.IPC_RMID, nil)
	if errors.Is(err, unix.EPERM) { // root needs CAP_SYS_ADMIN to remove those of other users
		err = user.command(exec.Command("ipcrm", "--shmem-id", strconv.Itoa(int(s)))).Run()
	}
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("shared memory segment %d: %w", int(s), err)
	}
	return nil
}
