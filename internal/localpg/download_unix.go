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
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
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
	dir, err := downloadDir(cfg)
	if err != nil {
		return binaries{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return binaries{}, err
	}
	build := filepath.Join(dir, fmt.Sprintf("postgres-%s-%s-%s", downloadVersion, runtime.GOOS, runtime.GOARCH))
	if _, err := os.Stat(build); errors.Is(err, os.ErrNotExist) {
		cfg.Logger.InfoContext(ctx, "downloading Postgres", slog.String("version", string(downloadVersion)))
		if err := download(ctx, cfg.DownloadURL, build); err != nil {
			return binaries{}, err
		}
	}
	bin := binaries{dir: filepath.Join(build, "bin")}
	bin.major, err = majorVersion(ctx, bin.dir)
	return bin, err
}

func downloadDir(cfg Config) (string, error) {
	switch {
	case cfg.DownloadDir != "":
		return filepath.Abs(cfg.DownloadDir)
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
func download(ctx context.Context, url, build string) error {
	work, err := os.MkdirTemp(filepath.Dir(build), "download-")
	if err != nil {
		return err
	}
	fetched := make(chan struct{})
	go func() {
		defer close(fetched)
		err = fetch(url, work)
	}()
	select {
	case <-fetched:
		if err == nil {
			err = install(filepath.Join(work, unpackedDir), build)
		}
		return errors.Join(err, os.RemoveAll(work))
	case <-ctx.Done():
		go func() {
			<-fetched
			_ = os.RemoveAll(work) // nobody is left to tell
		}()
		return ctx.Err()
	}
}

// unpackedDir is where fetch unpacks a build, within its directory.
const unpackedDir = "build"

// fetch downloads and unpacks a build.
//
// Of embedded-postgres only the downloading and unpacking is of use here: its server would run with a known password
// and without being tied to this process, and not at all as root. What it offers is to start a server, which does all
// of it in turn. So its data directory is one that os.RemoveAll refuses, which is what it calls between unpacking and
// initdb.
func fetch(url, work string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	refused := filepath.Join(work, "no-data") + "/."
	cfg := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, unpackedDir)).
		DataPath(refused).
		Port(uint32(port)).
		Logger(io.Discard)
	if url != "" {
		cfg = cfg.BinaryRepositoryURL(url)
	}
	err = embeddedpostgres.NewDatabase(cfg).Start()
	switch {
	case err == nil:
		panic("bug: localpg: embedded-postgres started a server")
	case strings.Contains(err.Error(), refused):
		return nil
	}
	return err
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
