// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/flock"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// basePackages are in a layer that all Debian images share. They include a shell and tools for `kubectl exec`.
var basePackages = []string{"dash", "coreutils", "grep", "sed", "procps", "libc6"}

// unneeded reports whether containers work without a package that other packages depend on: package management, the
// migration to a merged /usr, and Perl, in which both are written (40 of 77 MB).
func unneeded(pkg string) bool {
	return slices.Contains([]string{"dpkg", "debconf", "init-system-helpers", "usrmerge", "perl", "perl-base"}, pkg) ||
		strings.HasPrefix(pkg, "perl-modules-") || strings.HasPrefix(pkg, "libperl") || strings.HasSuffix(pkg, "-perl")
}

// debianBase is the layer of basePackages.
type debianBase struct {
	layer string   // its tar file
	debs  []string // the files of its packages
}

// debianLayers returns the base layer and the layer of the recipe's packages that are not in the base.
func (b *Builder) debianLayers(ctx context.Context, r Recipe, work string) ([]string, error) {
	if b.base == nil {
		base, err := b.buildBase(ctx)
		if err != nil {
			return nil, err
		}
		b.base = base
	}
	debs, err := b.download(ctx, r.Debian)
	if err != nil {
		return nil, err
	}
	debs = slices.DeleteFunc(debs, func(deb string) bool { return slices.Contains(b.base.debs, deb) })
	path := filepath.Join(work, "packages.tar")
	return []string{b.base.layer, path}, writeLayer(path, func(l *layer) error { return l.debs(ctx, debs) })
}

func (b *Builder) buildBase(ctx context.Context) (*debianBase, error) {
	debs, err := b.download(ctx, basePackages)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.Store, "base.tar")
	err = writeLayer(path, func(l *layer) error {
		if err := l.skeleton(); err != nil {
			return err
		}
		for _, dir := range mergedDirs {
			if err := l.dir("usr/"+dir, 0o755, 0); err != nil {
				return err
			}
			if err := l.links(map[string]string{dir: "usr/" + dir}); err != nil {
				return err
			}
		}
		return l.debs(ctx, debs)
	})
	return &debianBase{layer: path, debs: debs}, err
}

// download fetches packages and all their dependencies, as apt would for an empty system, and returns their files in a
// fixed order. apt checks their signatures.
func (b *Builder) download(ctx context.Context, packages []string) ([]string, error) {
	dir := filepath.Join(b.Store, "debs")
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o755); err != nil {
		return nil, err
	}
	unlock, err := flock.Lock(ctx, filepath.Join(dir, "lock.memfit"), b.Report.Note)
	if err != nil {
		return nil, err
	}
	defer unlock()
	empty := filepath.Join(dir, "empty-status")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return nil, err
	}
	install := func(archives string, flag string) ([]byte, error) {
		return aptGet(ctx, append([]string{
			"-o", "Dir::State::status=" + empty, "-o", "Dir::Cache::archives=" + archives + "/", "-o", "Debug::NoLocking=1",
			"-o", "APT::Sandbox::User=root", // the cache may be below a home directory that apt's own user may not enter
			"--no-install-recommends", "--yes", "--quiet", flag, "install",
		}, packages...)...)
	}
	// apt lists only packages that are not in its archive directory, so this one is always empty.
	nothing := filepath.Join(dir, "empty-archives")
	if err := os.MkdirAll(filepath.Join(nothing, "partial"), 0o755); err != nil {
		return nil, err
	}
	err = machine.WithLists(ctx, func() error {
		_, err := install(dir, "--download-only")
		return err
	})
	if err != nil {
		return nil, err
	}
	list, err := install(nothing, "--print-uris")
	if err != nil {
		return nil, err
	}
	return debFiles(dir, list)
}

// debFiles parses the output of --print-uris: one line per package, with the file name in its second column.
func debFiles(dir string, list []byte) ([]string, error) {
	var files []string
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[0], "'") {
			continue
		}
		name, _, _ := strings.Cut(fields[1], "_")
		if unneeded(name) {
			continue
		}
		files = append(files, filepath.Join(dir, fields[1]))
	}
	if len(files) == 0 {
		return nil, errors.New("apt lists no packages to download")
	}
	slices.Sort(files)
	return files, nil
}

func aptGet(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	return run.Output(cmd)
}

// mergedDirs are links into /usr since Debian 12, but packages still have files with the old paths.
var mergedDirs = []string{"bin", "lib", "lib32", "lib64", "libx32", "sbin"}

// unwanted are paths that images do not need: documentation, translations, and the modules from which a JDK builds
// other runtimes (80 MB of 120).
var unwanted = []string{
	"usr/share/doc/", "usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bug/",
	"/jmods/",
}

// debs adds the files of packages. It does not run their install scripts.
func (l *layer) debs(ctx context.Context, debs []string) error {
	for _, deb := range debs {
		if err := l.deb(ctx, deb); err != nil {
			return fmt.Errorf("unpacking %s: %w", filepath.Base(deb), err)
		}
	}
	return nil
}

func (l *layer) deb(ctx context.Context, deb string) error {
	ctx, cancel := context.WithCancel(ctx) // ends dpkg-deb when reading stops early
	defer cancel()
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := l.copyTar(tar.NewReader(out)); err != nil {
		cancel()
		return errors.Join(err, cmd.Wait())
	}
	if _, err := io.Copy(io.Discard, out); err != nil { // padding after the end of the archive
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

func (l *layer) copyTar(in *tar.Reader) error {
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := merged(h.Name)
		if name == "" || slices.Contains(mergedDirs, name) ||
			slices.ContainsFunc(unwanted, func(u string) bool { return strings.Contains(name+"/", u) }) {
			continue
		}
		if h.Typeflag == tar.TypeDir {
			name += "/"
		}
		if h.Typeflag == tar.TypeLink {
			h.Linkname = merged(h.Linkname)
		}
		h.Name = name
		if err := l.entry(h, in); err != nil {
			return err
		}
	}
}

// merged cleans a path in a package and resolves the links of a merged /usr: bin/sh becomes usr/bin/sh.
func merged(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, _, below := strings.Cut(name, "/")
	if below && slices.Contains(mergedDirs, first) {
		return "usr/" + name
	}
	return name
}
