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

// Memory is the memory of a guest, in bytes. The host allocates only pages that the guest uses. It is more than 4 GiB,
// the largest limit in `make articles`, because a runtime ignores a limit above the memory of its node.
const Memory = 5 << 30

// Boot holds the parameters to start a guest.
type Boot struct {
	Kernel string // the kernel's file
	Disk   string // the file of the root disk, which the guest writes to
	Swap   string // the file of the swap device; empty: none
	Share  Share
	Memory string // the directory for the guest's memory, from [MountMemory]
	Run    string // the directory for the kernel's pid file and the socket of its console
	Device string // the guest's network device on the machine; empty: no network
}

// Args returns the command line of the kernel.
func (b Boot) Args() []string {
	args := []string{
		fmt.Sprintf("mem=%dM", Memory>>20),
		// Intercept the guest's system calls by seccomp instead of ptrace: programs start in half the time.
		"seccomp=on",
		// With one processor, images are imported three times as fast as with two.
		"ncpus=1",
		"ubd0=" + b.Disk, "root=/dev/ubda", "rw", "init=/init",
		"hostfs=" + string(b.Share),
		"uml_dir=" + b.Run + "/", "umid=node",
		"con=null", "con0=null,fd:1", "con1=null",
		// End after a panic, so that the panic is noticed.
		"panic=-1", "noreboot",
	}
	if b.Swap != "" {
		args = append(args, "ubd1="+b.Swap)
	}
	if b.Device != "" {
		// Send raw packets through one end of a veth pair: a tap device crashes a kernel with CONFIG_SMP.
		args = append(args, "vec0:transport=raw,ifname="+b.Device+",depth=128")
	}
	return args
}

// Env returns the environment of the kernel. It stores the guest's memory in a file in TMPDIR.
func (b Boot) Env() []string { return []string{"TMPDIR=" + b.Memory, "HOME=" + b.Run} }

// MountMemory mounts a tmpfs for the guest's memory on dir, so that the memory is not written to a disk. It is mounted
// without noexec, because the kernel maps the memory as code, too.
func MountMemory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	const size = Memory + 512<<20 // and other files of the kernel
	err := unix.Mount("memfit-lab", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0700", size))
	if err != nil {
		return fmt.Errorf("mounting the node's memory: %w", err)
	}
	return nil
}

// UnmountMemory unmounts and removes dir. A missing mount is not an error.
func UnmountMemory(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	// EINVAL: nothing is mounted there
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting the node's memory: %w", err)
	}
	return ignoreMissing(os.Remove(dir))
}

// SwapSize is the size of the node's swap device, in bytes. A container's share of it depends on its request.
const SwapSize = 1 << 30

// MakeSparse creates a file of size zero bytes that takes no disk space until it is written.
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

// CopyDisk copies a disk image and keeps it sparse.
func CopyDisk(from, to string) error {
	return run.Quiet(exec.Command("cp", "--sparse=always", "--reflink=auto", from, to))
}

// linkOrCopy makes a hard link to a file, or copies it to another disk.
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
