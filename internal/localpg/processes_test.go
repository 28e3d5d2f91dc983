//go:build unix

package localpg_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// processes returns what ps says of each process, for the columns asked for.
func processes(t *testing.T, columns string) []string {
	t.Helper()
	out, err := osexec.Command("ps", "-A", "-ww", "-o", columns).Output()
	if err != nil {
		missing(t, "ps is needed: install procps")
	}
	return strings.Split(string(out), "\n")
}

func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	var pids []int
	for _, line := range processes(t, "pid=,ppid=") {
		var pid, ppid int
		if _, err := fmt.Sscan(line, &pid, &ppid); err == nil && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processesOf returns the processes that were started on something in dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, line := range processes(t, "pid=,stat=,command=") {
		if strings.Contains(line, dir) {
			found = append(found, line)
		}
	}
	return found
}

func commandLine(t *testing.T, pid int) string {
	t.Helper()
	for _, line := range processes(t, "pid=,command=") {
		if strings.HasPrefix(strings.TrimSpace(line), fmt.Sprint(pid, " ")) {
			return line
		}
	}
	t.Fatalf("no process %d", pid)
	return ""
}

// alive says whether a process is there that has not ended; one that has ended may still wait for its parent to notice.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil { // quicker than ps, on Linux
		return !bytes.Contains(stat, []byte(") Z "))
	}
	out, _ := osexec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	state := strings.TrimSpace(string(out))
	return state != "" && !strings.HasPrefix(state, "Z")
}

// memory is the ID of a server's shared memory, known on Linux only.
type memory string

// sharedMemory returns the shared memory of the server that runs on a data directory, of which no files are elsewhere. It reads /proc as the server's user:
// root may not without CAP_SYS_PTRACE.
func sharedMemory(t *testing.T, data string) memory {
	t.Helper()
	if runtime.GOOS != "linux" {
		return ""
	}
	path := filepath.Join(data, "postmaster.pid")
	pidFile, err := os.ReadFile(path)
	noError(t, err)
	info, err := os.Stat(path)
	noError(t, err)
	lines := strings.Split(string(pidFile), "\n")
	cat := osexec.Command("/bin/cat", "/proc/"+lines[0]+"/maps")
	if owner := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
		cat.Dir = "/"
		cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	maps, err := cat.Output()
	noError(t, err)
	equal(t, "it has memory in /dev/shm", strings.Contains(string(maps), "/dev/shm/PostgreSQL."), false)
	m := memory(strings.Fields(lines[6])[1])
	equal(t, "the memory is there", m.there(t), true)
	return m
}

func (m memory) there(t *testing.T) bool {
	t.Helper()
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	noError(t, err)
	return regexp.MustCompile(`(?m)^ *\S+ +` + string(m) + ` `).Match(segments)
}

// gone waits until the memory is gone: it may be kept for a moment by who looks at a process in /proc.
func (m memory) gone(t *testing.T) {
	t.Helper()
	if m != "" {
		eventually(t, "shared memory is gone", func() bool { return !m.there(t) })
	}
}

// filesWith returns the names of the files below dir that have text in them.
func filesWith(t *testing.T, dir, text string) string {
	t.Helper()
	var found []string
	noError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // Postgres removes files meanwhile
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(text)) {
			found = append(found, path+" has "+text)
		}
		return nil
	}))
	return strings.Join(found, "\n")
}
