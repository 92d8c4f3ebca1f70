// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package machine prepares the machine for the lab: it checks whether a node can run here and installs missing Debian
// packages. TakeSnapshot and RestoreSnapshot record and restore the settings that a kubelet changes.
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

// minFree is the disk space that a first start takes, in bytes, rounded up: 2.5 GB of Go module and build cache, 0.7 GB
// of binaries, 0.6 GB of packages and images, 1 GB of unpacked containers.
const minFree = 6 << 30

// ErrUnsupported is wrapped by errors about machines and users that cannot run the lab.
var ErrUnsupported = errors.New("the lab cannot run here")

const useKind = "On such a machine use kind instead, which needs Docker or Podman and no root:\n" +
	"  KIND=1 make demo\n" +
	"or any cluster you have:\n" +
	"  KUBECONFIG=/path/to/kubeconfig make demo"

// Check returns an error unless the user is root and the directories have enough space.
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

// CheckSpace creates the directory if it is missing and returns an error if it has less than need bytes free.
func CheckSpace(dir string, need uint64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", dir, err)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("measuring the free space of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("%s has %d MiB free, and the lab needs %d MiB: free some, or set MEMFIT_CACHE and "+
			"MEMFIT_LAB_STATE to another disk",
			dir, free>>20, need>>20)
	}
	return nil
}

// Need is a program or file that a Debian package provides.
type Need struct {
	Package string
	Why     string      // what the lab uses it for, for a message
	Present func() bool // reports whether the program or file exists
}

// Needs returns the programs and files that the lab needs.
func Needs() []Need {
	return []Need{
		{"iproute2", "`ip` configures the network namespace", Command("ip")},
		{"gcc", "runc is partly C", Command("gcc")},
		{"pkg-config", "finds libseccomp when runc is built", Command("pkg-config")},
		{"npm", "downloads the Node.js 20 binary of a workload image", Command("npm")},
		{"libseccomp-dev", "runc filters system calls with it", File("/usr/include/seccomp.h")},
	}
}

// Install installs the missing packages. Without apt, its error lists the packages to install.
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
		return fmt.Errorf("this machine has no apt-get: install its packages for %s", strings.Join(missing, ", "))
	}
	if err := aptUpdate(ctx); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
}

// WithLists calls do, which needs apt's package lists. After a failure it updates the lists and calls do again: a new
// machine has no lists, and old lists name files that no longer exist.
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

// Command returns a function that reports whether a program is on the PATH.
func Command(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
}

// File returns a function that reports whether a file exists.
func File(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}
