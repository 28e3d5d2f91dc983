//go:build unix

package localpg

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/xi2/xz"
)

// mavenCentral has the builds of https://github.com/zonkyio/embedded-postgres-binaries: small ones, which run without being
// installed. Each is a .jar, which is a zip file, with one .txz in it.
const mavenCentral = "https://repo1.maven.org/maven2"

// maxJar is far more than a build has: some 15 MB.
const maxJar = 1 << 28

// fetch downloads a build and unpacks it into a new directory. The checksum beside it is compared if there is one.
func fetch(ctx context.Context, repository, dir string) error {
	name := "embedded-postgres-binaries-" + platform()
	url := fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%[2]s-%[3]s.jar", cmp.Or(repository, mavenCentral), name, downloadVersion)
	jar, err := get(ctx, url)
	if err != nil {
		return err
	}
	switch want, err := get(ctx, url+".sha256"); {
	case errors.Is(err, errNotThere):
	case err != nil:
		return err
	default:
		sum := sha256.Sum256(jar)
		if got := hex.EncodeToString(sum[:]); got != strings.TrimSpace(string(want)) {
			return fmt.Errorf("%s has checksum %s, expected %.64q", url, got, want)
		}
	}
	if err := unpack(jar, dir); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// platform is the name of this system in those of the builds.
func platform() string {
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		arch += "-alpine"
	}
	return runtime.GOOS + "-" + arch
}

var errNotThere = errors.New("not there")

// get downloads a file.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w", url, errNotThere)
	default:
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxJar))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return body, nil
}

// unpack unpacks the archive within a jar.
func unpack(jar []byte, dir string) error {
	files, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return err
	}
	for _, file := range files.File {
		if !strings.HasSuffix(file.Name, ".txz") {
			continue
		}
		packed, err := file.Open()
		if err != nil {
			return err
		}
		defer func() { _ = packed.Close() }()
		unpacked, err := xz.NewReader(packed, 0)
		if err != nil {
			return err
		}
		return untar(tar.NewReader(unpacked), dir)
	}
	return errors.New("no .txz in it")
}

// untar unpacks into a new directory, and writes nothing outside of it.
func untar(archive *tar.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeSymlink:
			err = root.Symlink(header.Linkname, name)
		case tar.TypeReg:
			err = writeFile(root, name, os.FileMode(header.Mode)&0o755, archive)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func writeFile(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
