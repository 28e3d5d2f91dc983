package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const module = "github.com/kiloshard/kiloshard"

// kiloshard shows a command and runs it, as an operator would.
func (t *try) kiloshard(ctx context.Context, args ...string) error {
	shown := "$ kiloshard"
	for _, arg := range args {
		if arg = strings.ReplaceAll(arg, t.dir+"/", ""); strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		shown += " " + arg
	}
	t.say("%s", shown)
	cmd := exec.CommandContext(ctx, filepath.Join(t.programs, "kiloshard"), append(args, "-c", t.path("kiloshard.yaml"))...)
	cmd.Env = append(os.Environ(), t.hosts.environment()...)
	return show(cmd, t.out)
}

// build builds the programs into a folder.
func build(ctx context.Context, folder string) error {
	return show(exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator),
		module+"/cmd/kiloshard", module+"/router/example/cmd/photos"), io.Discard)
}

// show runs a program and prints what it prints. What goes to its standard error is in the error if it fails.
func show(cmd *exec.Cmd, out io.Writer) error {
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return nil
}

// process is a program that runs until it is ended.
type process struct {
	cmd       *exec.Cmd
	firstLine string // of what it printed

	waiting sync.Once
	ended   error
}

// startProcess starts a program and returns when it has printed a line. What goes to its standard error goes to a file.
func startProcess(ctx context.Context, log string, environment []string, program string, args ...string) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has its own
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), environment...), file
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%s: %w; its log ends with: %s", program, p.ended, tail(log))
	}
	p.firstLine = strings.TrimSpace(line)
	return p, nil
}

// end asks the process to end, and waits for it. The error is that of its exit.
func (p *process) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	p.wait()
	return p.ended
}

// kill ends the process, if it has not ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // there is nothing to kill if it has ended
	p.wait()
}

func (p *process) wait() { p.waiting.Do(func() { p.ended = p.cmd.Wait() }) }

// tail returns the last lines of a file.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > 2000 {
		_, _ = file.Seek(-2000, io.SeekEnd) // else all of it is read
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
