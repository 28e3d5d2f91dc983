//go:build unix

package localpg

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

	"github.com/kiloshard/kiloshard/internal/port"
)

// downloadVersion is the build that is downloaded.
const downloadVersion = embeddedpostgres.V17

func startDownload(ctx context.Context, cfg Config) (engine, string, error) {
	bin, err := downloaded(ctx, cfg)
	if err != nil {
		return nil, "", notHere(fmt.Errorf("download: %w", err))
	}
	return startCluster(ctx, cfg, bin)
}

// downloaded returns the downloaded build, and downloads it first if this is not yet done.
func downloaded(ctx context.Context, cfg Config) (binaries, error) {
	dir, err := cacheDir(cfg)
	if err != nil {
		return binaries{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return binaries{}, err
	}
	build := filepath.Join(dir, fmt.Sprintf("postgres-%s-%s-%s", downloadVersion, runtime.GOOS, runtime.GOARCH))
	if _, err := os.Stat(build); errors.Is(err, os.ErrNotExist) {
		cfg.Logger.InfoContext(ctx, "downloading Postgres", slog.String("version", string(downloadVersion)))
		if err := download(ctx, cfg, build); err != nil {
			return binaries{}, err
		}
	}
	bin := binaries{dir: filepath.Join(build, "bin")}
	bin.major, err = majorVersion(ctx, bin.dir)
	return bin, err
}

func cacheDir(cfg Config) (string, error) {
	switch {
	case cfg.CacheDir != "":
		return filepath.Abs(cfg.CacheDir)
	case os.Geteuid() == 0:
		return "/var/cache/kiloshard", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to keep it: %w", err)
	}
	return filepath.Join(cache, "kiloshard"), nil
}

// download downloads a build and puts it at the path build, in one step once it is complete. The library that
// downloads knows no context: when ctx ends, its download goes on until it is done or the process ends, and what it
// brings is removed.
func download(ctx context.Context, cfg Config, build string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(build), "download-")
	if err != nil {
		return err
	}
	dir, err := newRunDir(ctx, cfg, identity{}) // swept away later if this process is killed
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	cleanUp := func() error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return errors.Join(dir.remove(limited), os.RemoveAll(work))
	}
	fetched := make(chan struct{})
	go func() {
		defer close(fetched)
		err = fetch(cfg.DownloadURL, work, dir.data())
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
			_ = cleanUp() // nobody is left to tell
		}()
		return ctx.Err()
	}
}

// unpackedDir is where fetch unpacks a build, within its directory.
const unpackedDir = "build"

// fetch downloads and unpacks a build.
//
// What embedded-postgres offers is to start a server, for which it downloads and unpacks a build, so one is started on data,
// and stopped. It makes its runtime directory once the build is unpacked. After that the server does not matter: for root, as
// whom Postgres does not run, it does not start. Nor can it be used: it is not tied to this process.
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
		Password(newPassword()).
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

// install puts an unpacked build in its place. Another process may have been quicker.
func install(unpacked, build string) error {
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return err
	}
	if err := os.Rename(unpacked, build); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
