//go:build unix

// Package initdb fills data directories: by initdb, which runs once for each build of Postgres, and then with copies of the result.
package initdb

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/binaries"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/daemon"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

var initdbOptions = []string{
	"--username=" + login.Superuser, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
}

// Fill fills the data directory of a server and returns the password of its superuser. Servers from the same template have the
// same password.
func Fill(ctx context.Context, d *daemon.Daemon, bin binaries.Dir, cacheDir string, logger *slog.Logger) (password string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	from, noTemplate := templateOf(bin, initdbOptions, cacheDir)
	if noTemplate == nil {
		password, noTemplate = from.copyTo(d.Dir.Data(), d.User)
	}
	if noTemplate == nil {
		return password, nil
	}
	logger.DebugContext(ctx, "run initdb", slog.Any("why", noTemplate))
	if password, err = run(ctx, d, bin); err != nil {
		return "", err
	}
	if from.dir != "" {
		if err := from.save(d.Dir.Data(), password); err != nil {
			logger.DebugContext(ctx, "keep no template of initdb", slog.Any("error", err))
		}
	}
	return password, nil
}

// run empties the data directory and runs initdb there.
func run(ctx context.Context, d *daemon.Daemon, bin binaries.Dir) (password string, err error) {
	left, err := filepath.Glob(filepath.Join(d.Dir.Data(), "*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return "", err
	}
	password = login.NewPassword()
	// Postgres recognizes the form of a verifier and stores it in place of a password.
	passwordFile := filepath.Join(d.Dir.Path, "password")
	defer func() { err = errors.Join(err, os.RemoveAll(passwordFile)) }()
	if err := d.User.WriteFile(passwordFile, []byte(login.Verifier(password)+"\n")); err != nil {
		return "", err
	}
	cmd := exec.Command(bin.Program("initdb"), slices.Concat(initdbOptions, []string{"-D", d.Dir.Data(), "--pwfile=" + passwordFile})...)
	cmd.Env = []string{"LC_ALL=C"}
	return password, d.RunToEnd(ctx, cmd)
}
