//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// downloadVersion is the build that is downloaded.
const downloadVersion = "17.5.0"

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
		cfg.Logger.InfoContext(ctx, "downloading Postgres", slog.String("version", downloadVersion))
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

// download downloads a build and puts it at the path build, in one step once it is complete.
func download(ctx context.Context, url, build string) error {
	work, err := os.MkdirTemp(filepath.Dir(build), "download-")
	if err != nil {
		return err
	}
	unpacked := filepath.Join(work, "build")
	if err := fetch(ctx, url, unpacked); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	return errors.Join(install(unpacked, build), os.RemoveAll(work))
}

// install puts an unpacked build in its place. Another process may have been quicker.
func install(unpacked, build string) error {
	if err := os.Rename(unpacked, build); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
