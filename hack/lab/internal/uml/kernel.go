// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/flock"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// config has the required options of the kernel. `make olddefconfig` sets the others.
//
//go:embed files/uml.config
var config []byte

// Needs returns the programs and files that the builds of the kernel and the disk need.
func Needs() []machine.Need {
	return []machine.Need{
		{Package: "make", Why: "builds the kernel of the node with cgroup v2", Present: machine.Command("make")},
		{Package: "gcc", Why: "compiles the kernel", Present: machine.Command("gcc")},
		{Package: "libc6-dev", Why: "has the C library of the kernel", Present: machine.File("/usr/include/stdlib.h")},
		{Package: "flex", Why: "reads the kernel's configuration", Present: machine.Command("flex")},
		{Package: "bison", Why: "reads the kernel's configuration", Present: machine.Command("bison")},
		{Package: "bc", Why: "computes constants of the kernel", Present: machine.Command("bc")},
		{Package: "xz-utils", Why: "unpacks the kernel's sources", Present: machine.Command("xz")},
		{Package: "e2fsprogs", Why: "makes the node's disk", Present: machine.Command("mke2fs")},
		{Package: "debian-archive-keyring", Why: "has the keys to verify the sources", Present: machine.File(keyring)},
	}
}

// Builder builds kernels and disks into a cache.
type Builder struct {
	Store  string // the directory of the cache
	Report *progress.Reporter
}

// recipe is part of every cache key. Raise it when kernels or disks are built differently.
const recipe = 1

// Kernel returns the kernel's file. If the cache lacks it, Kernel builds it, in about ten minutes on two cores.
//
// The cache key has the pinned version, also if the kernel was built from other sources, because the archive no longer
// had the pinned ones.
func (b *Builder) Kernel(ctx context.Context) (string, error) {
	entry := filepath.Join(b.Store, "kernel-"+key(runtime.GOARCH, pinned.Package, pinned.Version, string(config)))
	if err := os.MkdirAll(entry, 0o755); err != nil {
		return "", err
	}
	unlock, err := flock.Lock(ctx, entry+".lock", b.Report.Note)
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(entry, "linux")
	if _, err := os.Stat(path); err == nil {
		b.Report.Skip("linux", "cached")
		return path, nil
	}
	step := b.Report.Start("linux", "building the kernel of the node with cgroup v2")
	if err := b.buildKernel(ctx, path); err != nil {
		step.Fail()
		return "", fmt.Errorf("building the kernel of the node with cgroup v2: %w", err)
	}
	step.Done("built")
	return path, nil
}

// buildSpace is the disk space that the build of a kernel takes, in bytes, rounded up.
const buildSpace = 4 << 30

func (b *Builder) buildKernel(ctx context.Context, path string) error {
	if err := machine.CheckSpace(b.Store, buildSpace); err != nil {
		return err
	}
	work, err := workDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	k := kernelBuild{Builder: b, work: work, out: path}
	for _, do := range []func(context.Context) error{k.fetch, k.unpack, k.compile, k.install} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// kernelBuild is the state of one build.
type kernelBuild struct {
	*Builder

	work   string // a directory that is removed when the build ends
	out    string // the kernel's file
	source Source
	deb    string // the file of the package
	tree   string // the directory of the unpacked sources
}

// fetch downloads the package of sources and checks it. The cache keeps it, because the archive may drop it.
func (k *kernelBuild) fetch(ctx context.Context) error {
	debs := filepath.Join(k.Store, "debs")
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return err
	}
	kept := func(s Source) string { return filepath.Join(debs, s.Package+"_"+key(s.Version)+".deb") }
	k.source, k.deb = pinned, kept(pinned)
	if matches(k.deb, pinned.SHA256) {
		return nil
	}
	a, source, why, err := find(ctx, pinned, filepath.Join(k.work, "apt"))
	if err != nil {
		return err
	}
	k.source = source
	if why != "" {
		k.Report.Note("%s", why)
	}
	fetched, err := a.download(ctx, k.source, k.work)
	if err != nil {
		return err
	}
	if !matches(fetched, k.source.SHA256) {
		return fmt.Errorf("%s %s does not have the checksum %s",
			k.source.Package, k.source.Version, k.source.SHA256)
	}
	k.deb = kept(k.source)
	return os.Rename(fetched, k.deb)
}

func (k *kernelBuild) unpack(ctx context.Context) error {
	if err := run.Quiet(exec.CommandContext(ctx, "dpkg-deb", "-x", k.deb, filepath.Join(k.work, "deb"))); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(k.work, "deb/usr/src/linux-source-*.tar.xz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("%s has %d archives of sources, want 1", k.source.Package, len(archives))
	}
	k.tree = filepath.Join(k.work, "linux")
	if err := os.Mkdir(k.tree, 0o755); err != nil {
		return err
	}
	return run.Quiet(exec.CommandContext(ctx, "tar", "-xf", archives[0], "-C", k.tree, "--strip-components=1"))
}

// compile builds the kernel. Before, it checks that the sources support all options of the configuration.
func (k *kernelBuild) compile(ctx context.Context) error {
	path := filepath.Join(k.tree, ".config")
	if err := os.WriteFile(path, config, 0o644); err != nil {
		return err
	}
	if err := k.make(ctx, "olddefconfig"); err != nil {
		return err
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if lost := lostOptions(config, got); len(lost) > 0 {
		return fmt.Errorf("%s %s does not support these options of internal/uml/files/uml.config: %s",
			k.source.Package, k.source.Version, strings.Join(lost, ", "))
	}
	return k.make(ctx, fmt.Sprintf("-j%d", runtime.NumCPU()), "linux")
}

func (k *kernelBuild) make(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "make", append([]string{"ARCH=um", "-C", k.tree}, args...)...)
	// Equal sources give equal kernels.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "MAKEFLAGS=",
		"KBUILD_BUILD_USER=memfit", "KBUILD_BUILD_HOST=lab", "KBUILD_BUILD_TIMESTAMP=2026-01-01")
	// After SIGTERM, make ends its compilers; after SIGKILL, they keep running.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return run.Quiet(cmd)
}

// install writes the kernel to the cache without its symbols (10 MB instead of 100), after it checked that it starts.
func (k *kernelBuild) install(ctx context.Context) error {
	fresh := k.out + ".new"
	strip := exec.CommandContext(ctx, "strip", "-o", fresh, filepath.Join(k.tree, "linux"))
	if err := run.Quiet(strip); err != nil {
		return err
	}
	if err := run.Quiet(exec.CommandContext(ctx, fresh, "--version")); err != nil {
		return fmt.Errorf("the new kernel does not start: %w", err)
	}
	return os.Rename(fresh, k.out)
}

// lostOptions returns the requested options that are missing in the effective configuration.
func lostOptions(requested, got []byte) []string {
	var lost []string
	have := strings.Split(string(got), "\n")
	for line := range strings.Lines(string(requested)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "CONFIG_") && !slices.Contains(have, line) {
			lost = append(lost, line)
		}
	}
	return lost
}

// key returns a hash of the inputs of a file in the cache, for its name.
func key(parts ...string) string {
	h := sha256.New()
	fmt.Fprintln(h, recipe)
	for _, part := range parts {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// matches reports whether the file exists and has this SHA-256.
func matches(path, sum string) bool {
	got, err := fileSHA256(path)
	return err == nil && got == sum
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ignoreMissing returns err, or nil if the file did not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
