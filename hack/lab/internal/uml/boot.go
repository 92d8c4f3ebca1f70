// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/hack/lab/internal/run"
)

// Memory is what a guest has at most; the host gives what is touched. It is more than the largest limit of a pod of
// make articles, 4 GiB: of a limit above what the node has, a runtime sees nothing.
const Memory = 5 << 30

// Boot is how a guest is started.
type Boot struct {
	Kernel string
	Disk   string // written to
	Swap   string // a file that becomes the swap device; empty: none
	Share  Share
	Memory string // a directory of [MountMemory]
	Run    string // the kernel's own files: its pid, the socket of its console
	Device string // the network device that is the guest's; empty: no network
}

// Args is the command line of the kernel.
func (b Boot) Args() []string {
	args := []string{
		fmt.Sprintf("mem=%dM", Memory>>20),
		// System calls of the guest are caught by seccomp instead of ptrace: starting a program takes half as long.
		"seccomp=on",
		// Images are imported three times as fast as with two processors.
		"ncpus=1",
		"ubd0=" + b.Disk, "root=/dev/ubda", "rw", "init=/init",
		"hostfs=" + string(b.Share),
		"uml_dir=" + b.Run + "/", "umid=node",
		"con=null", "con0=null,fd:1", "con1=null",
		// A kernel that panics ends, so that it is noticed.
		"panic=-1", "noreboot",
	}
	if b.Swap != "" {
		args = append(args, "ubd1="+b.Swap)
	}
	if b.Device != "" {
		// Raw packets of one end of a veth pair. A tap device crashes a kernel with CONFIG_SMP.
		args = append(args, "vec0:transport=raw,ifname="+b.Device+",depth=128")
	}
	return args
}

// Env is the environment of the kernel: it keeps the guest's memory in a file, which it maps as code, too.
func (b Boot) Env() []string { return []string{"TMPDIR=" + b.Memory, "HOME=" + b.Run} }

// MountMemory makes a directory that holds the guest's memory: a tmpfs, because a file on a disk would be written to
// it, that programs may be run from.
func MountMemory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	const room = Memory + 512<<20 // and what the kernel keeps beside it
	err := unix.Mount("memfit-lab", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0700", room))
	if err != nil {
		return fmt.Errorf("mounting the node's memory: %w", err)
	}
	return nil
}

// UnmountMemory gives the memory back.
func UnmountMemory(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	// EINVAL: nothing is mounted there
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting the node's memory: %w", err)
	}
	return removed(os.Remove(dir))
}

// SwapSize is the node's swap device: a container gets its share of it, by its request.
const SwapSize = 1 << 30

// MakeSparse makes a file of zeros that takes no space until it is written.
func MakeSparse(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// CopyDisk copies a disk image; what is empty in it takes no space in the copy either.
func CopyDisk(from, to string) error {
	return run.Quiet(exec.Command("cp", "--sparse=always", "--reflink=auto", from, to))
}

// linkOrCopy gives a file another name, or copies it when the other name is on another disk.
func linkOrCopy(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return run.Quiet(exec.Command("cp", from, to))
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
