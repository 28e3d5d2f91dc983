//go:build unix

package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/process"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/rundir"
	"github.com/kiloshard/kiloshard/internal/port"
)

// downloadVersion is the build that Download downloads.
const downloadVersion = embeddedpostgres.V17

// Download returns the build in the cache. If it is missing, Download downloads it from a Maven repository, the one of
// embedded-postgres if url is empty. The directory that work describes is removed.
func Download(ctx context.Context, url, cacheDir string, work rundir.Config) (Dir, error) {
	dir, err := CacheDir(cacheDir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	build := filepath.Join(dir, fmt.Sprintf("postgres-%s-%s-%s", downloadVersion, runtime.GOOS, runtime.GOARCH))
	if _, err := os.Stat(build); errors.Is(err, os.ErrNotExist) {
		work.Logger.InfoContext(ctx, "downloading Postgres", slog.String("version", string(downloadVersion)))
		if err := download(ctx, url, build, work); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(build, "bin")
	_, err = majorVersion(ctx, bin)
	return Dir(bin), err
}

// CacheDir returns the directory of downloaded builds and templates: the given one, or a directory of the user.
func CacheDir(given string) (string, error) {
	switch {
	case given != "":
		return filepath.Abs(given)
	case os.Geteuid() == 0:
		return "/var/cache/kiloshard", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to keep it: %w", err)
	}
	return filepath.Join(cache, "kiloshard"), nil
}

// download downloads a build and renames it to the path build when it is complete. The library that downloads has no context:
// after ctx ends its download continues until it is done or this process ends, and then download removes the result.
func download(ctx context.Context, url, build string, cfg rundir.Config) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(build), "download-")
	if err != nil {
		return err
	}
	dir, err := rundir.New(ctx, cfg, process.User{}) // if this process is killed, another one removes it
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	cleanUp := func() error { return errors.Join(cleanup.Do(ctx, dir.Remove), os.RemoveAll(work)) }
	fetched := make(chan struct{})
	go func() {
		defer close(fetched)
		err = fetch(url, work, dir.Data())
	}()
	select {
	case <-fetched:
		if err == nil {
			err = install(filepath.Join(work, unpackedDir), build)
		}
		return errors.Join(err, cleanUp())
	case <-ctx.Done():
		go func() {
			<-fetched
			_ = cleanUp() // the caller has gone
		}()
		return ctx.Err()
	}
}

// unpackedDir is where fetch unpacks a build, within its directory.
const unpackedDir = "build"

// fetch downloads and unpacks a build.
//
// embedded-postgres downloads and unpacks a build when it starts a server, so fetch starts one on data and stops it.
// embedded-postgres makes its runtime directory after it has unpacked the build. Failures after that do not matter: for root,
// as whom Postgres refuses to run, the server does not start. We cannot use this server: it would outlive this process.
func fetch(url, work, data string) error {
	taken, err := port.Take()
	if err != nil {
		return err
	}
	defer taken.Release()
	runtimeDir := filepath.Join(work, "runtime")
	cfg := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		CachePath(filepath.Join(work, "archive")).
		BinariesPath(filepath.Join(work, unpackedDir)).
		RuntimePath(runtimeDir).
		DataPath(data).
		Password(login.NewPassword()).
		Port(uint32(taken.Number)).
		StartParameters(map[string]string{"unix_socket_directories": "", "fsync": "off"}).
		Logger(io.Discard)
	if url != "" {
		cfg = cfg.BinaryRepositoryURL(url)
	}
	server := embeddedpostgres.NewDatabase(cfg)
	err = server.Start()
	if err == nil {
		return server.Stop()
	}
	if _, missing := os.Stat(runtimeDir); missing != nil {
		return err
	}
	return nil
}

// install moves an unpacked build to its path. Another process may have been quicker.
func install(unpacked, build string) error {
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return err
	}
	if err := os.Rename(unpacked, build); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
