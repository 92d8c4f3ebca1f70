// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package machine looks at the machine before the lab uses it: whether a node can run here at all, and which Debian
// packages are missing. It installs those when it may, and reports which and why.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/memfit/memfit/hack/lab/internal/run"
)

// minFree is what a cold start leaves on disk, rounded up: 2.5 GB of Go module and build cache, 0.7 GB of binaries,
// 0.6 GB of packages and images, 1 GB of unpacked containers.
const minFree = 6 << 30

// ErrUnsupported marks machines and users that cannot run the lab. Its message names the alternative.
var ErrUnsupported = errors.New("the lab cannot run here")

const useKind = "On such a machine use kind instead, which needs Docker or Podman and no root:\n" +
	"  KIND=1 make demo\n" +
	"or any cluster you have:\n" +
	"  KUBECONFIG=/path/to/kubeconfig make demo"

// Check reports whether a node can run on this machine, whose directories will grow.
func Check(dirs ...string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf(
			"%w: namespaces, mounts and cgroups need root. Run it again with sudo -E.\n%s", ErrUnsupported, useKind,
		)
	}
	for _, dir := range dirs {
		if err := CheckSpace(dir, minFree); err != nil {
			return err
		}
	}
	return nil
}

// CheckSpace reports whether a directory, which is made if it is missing, has space for so many bytes.
func CheckSpace(dir string, need uint64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("measuring the free space of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("%s has %d MiB free and the lab needs %d: free some, or set MEMFIT_CACHE and MEMFIT_LAB_STATE to "+
			"another disk",
			dir, free>>20, need>>20)
	}
	return nil
}

// Need is something that a Debian package provides.
type Need struct {
	Package string
	Why     string
	Present func() bool
}

// Needs lists what the lab uses of the machine.
func Needs() []Need {
	return []Need{
		{"iproute2", "`ip` makes the network namespace", Command("ip")},
		{"gcc", "runc is partly C", Command("gcc")},
		{"pkg-config", "finds libseccomp when runc is built", Command("pkg-config")},
		{"npm", "carries the Node.js 20 binary of the Node.js workload image", Command("npm")},
		{"libseccomp-dev", "runc filters system calls with it", File("/usr/include/seccomp.h")},
	}
}

// Install installs the packages of what is missing. On a machine without apt it reports what to install by hand.
func Install(ctx context.Context, out io.Writer, needs []Need) error {
	var missing []string
	for _, n := range needs {
		if n.Present() {
			continue
		}
		missing = append(missing, n.Package)
		fmt.Fprintf(out, "Installing the Debian package %s: %s\n", n.Package, n.Why)
	}
	if len(missing) == 0 {
		return nil
	}
	if !Command("apt-get")() {
		return fmt.Errorf("this machine has no apt-get: install what your distribution calls %s", strings.Join(missing, ", "))
	}
	if err := aptUpdate(ctx); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
}

// WithLists does what needs apt's lists of packages, and again with new ones when it fails: a new machine has none, and
// old ones name files that are gone.
func WithLists(ctx context.Context, do func() error) error {
	err := do()
	if err == nil {
		return nil
	}
	if updateErr := aptUpdate(ctx); updateErr != nil {
		return errors.Join(err, updateErr)
	}
	return do()
}

func aptUpdate(ctx context.Context) error { return apt(ctx, "update", "-q") }

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return run.Quiet(cmd)
}

// Command reports, when it is asked, whether there is a program of a name.
func Command(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
}

// File reports, when it is asked, whether there is a file.
func File(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}
