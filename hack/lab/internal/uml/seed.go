// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
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

// nodeInit is the first process of a guest.
//
//go:embed files/node-init
var nodeInit []byte

// nodePrograms are the programs of a node, which are files in SeedRequest.Programs.
var nodePrograms = []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "bridge", "host-local"}

// diskSize is enough for images and for the files of containers. The disk's file is sparse.
const diskSize = "8G"

// SeedRequest specifies a root disk with imported images, and the guest that imports them.
type SeedRequest struct {
	Kernel   string
	Programs string            // the folder of built programs; its name has a hash
	Images   []string          // image tars; their names have hashes
	Config   map[string][]byte // files in the share: containerd's configuration
	Share    Share             // as in Boot, for the guest that imports the images
	Memory   string            // as in Boot
	Run      string            // as in Boot
}

// Seed returns the file of a root disk with imported images. If the cache lacks it, Seed makes it, in about two
// minutes.
func (b *Builder) Seed(ctx context.Context, r SeedRequest) (string, error) {
	busybox, err := b.busybox(ctx)
	if err != nil {
		return "", err
	}
	name, err := seedName(r, busybox)
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.Store, name+".ext4")
	unlock, err := flock.Lock(ctx, path+".lock", b.Report.Note)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		b.Report.Skip("seed disk", "cached")
		now := time.Now()
		return path, os.Chtimes(path, now, now) // prune keeps recently used disks
	}
	step := b.Report.Start("seed disk", "importing images in a first boot")
	if err := b.buildSeed(ctx, r, busybox, path); err != nil {
		step.Fail()
		return "", fmt.Errorf("making the disk of the node with cgroup v2: %w", err)
	}
	step.Done("made")
	b.prune(path)
	return path, nil
}

// seedName returns the disk's name in the cache, with a hash of all inputs. Programs and images are hashed by their
// paths, which have hashes of the content.
func seedName(r SeedRequest, busybox string) (string, error) {
	shell, err := fileSHA256(busybox)
	if err != nil {
		return "", err
	}
	parts := []string{runtime.GOARCH, r.Kernel, r.Programs, shell, string(nodeInit), diskSize}
	parts = append(parts, nodePrograms...)
	parts = append(parts, r.Images...)
	for _, name := range slices.Sorted(maps.Keys(r.Config)) {
		parts = append(parts, name, string(r.Config[name]))
	}
	return "seed-" + key(parts...), nil
}

// buildSeed makes the disk and moves it to path when it is complete.
func (b *Builder) buildSeed(ctx context.Context, r SeedRequest, busybox, path string) error {
	work, err := workDir(path)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fresh := filepath.Join(work, "disk.ext4")
	if err := makeDisk(ctx, r.Programs, busybox, filepath.Join(work, "root"), fresh); err != nil {
		return err
	}
	if err := r.Share.Prepare(map[string]string{"SEED": "1", "NODE": "seed"}); err != nil {
		return err
	}
	defer os.RemoveAll(string(r.Share))
	for name, data := range r.Config {
		if err := r.Share.Put(name, data); err != nil {
			return err
		}
	}
	for i, image := range r.Images {
		// Number the images: the guest imports them in the order of their names, and the pause image must be first.
		if _, _, err := r.Share.AddImage(fmt.Sprintf("%02d-%s", i, filepath.Base(image)), image); err != nil {
			return err
		}
	}
	boot := Boot{Kernel: r.Kernel, Disk: fresh, Share: r.Share, Memory: r.Memory, Run: r.Run}
	if err := bootOnce(ctx, boot, b.Report); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// bootOnce runs a guest until it powers off. Its memory is mounted while it runs.
func bootOnce(ctx context.Context, boot Boot, report *progress.Reporter) error {
	if err := os.MkdirAll(boot.Run, 0o700); err != nil {
		return err
	}
	if err := MountMemory(boot.Memory); err != nil {
		return err
	}
	defer func() { _ = UnmountMemory(boot.Memory) }() // lab-down tries it again
	log, err := os.Create(filepath.Join(boot.Run, "console.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, boot.Kernel, boot.Args()...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, boot.Env()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	// Pdeathsig is sent when the thread that started the process ends, not when the program ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if _, seeded := os.Stat(boot.Share.path("seeded")); seeded == nil {
		return nil
	}
	console, _ := os.ReadFile(log.Name()) // it is only for a note
	report.Note("The last lines of the guest's console:\n%s", console[max(0, len(console)-3000):])
	return errors.Join(errors.New("the first boot did not import all images"), err)
}

// makeDisk fills the directory root and writes a root disk with its content to path. It mounts nothing.
func makeDisk(ctx context.Context, programs, busybox, root, path string) error {
	for _, dir := range []string{
		"bin", "sbin", "etc", "proc", "sys", "dev", "run", "tmp", "root", "var/lib", "var/log", "opt/lab", "share",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := installBusybox(ctx, busybox, filepath.Join(root, "bin")); err != nil {
		return err
	}
	for _, name := range nodePrograms {
		if err := linkOrCopy(filepath.Join(programs, name), filepath.Join(root, "opt/lab", name)); err != nil {
			return err
		}
	}
	for name, data := range map[string]string{"init": string(nodeInit), "etc/passwd": "root:x:0:0::/root:/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(data), 0o755); err != nil {
			return err
		}
	}
	if err := MakeSparse(path, 0); err != nil {
		return err
	}
	return run.Quiet(exec.CommandContext(ctx, "mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1",
		"-J", "size=16", "-d", root, path, diskSize))
}

// installBusybox puts busybox into bin, with a link for each of its commands.
func installBusybox(ctx context.Context, busybox, bin string) error {
	if err := linkOrCopy(busybox, filepath.Join(bin, "busybox")); err != nil {
		return err
	}
	names, err := run.Output(exec.CommandContext(ctx, busybox, "--list"))
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(names)) {
		if name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// busybox returns the file of a static shell with common tools, from Debian's package. The package is not installed,
// because it would replace the machine's own busybox.
func (b *Builder) busybox(ctx context.Context) (string, error) {
	dir := filepath.Join(b.Store, "busybox")
	path := filepath.Join(dir, "bin/busybox")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(b.Store, 0o755); err != nil {
		return "", err
	}
	unlock, err := flock.Lock(ctx, dir+".lock", b.Report.Note)
	if err != nil {
		return "", err
	}
	defer unlock()
	work, err := workDir(dir)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := fetchBusybox(ctx, work); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(work, "tree"), dir)
}

func fetchBusybox(ctx context.Context, work string) error {
	err := machine.WithLists(ctx, func() error {
		cmd := exec.CommandContext(ctx, "apt-get", "download", "--quiet", "-o", "APT::Sandbox::User=root", "busybox-static")
		cmd.Dir = work
		return run.Quiet(cmd)
	})
	if err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download of busybox-static wrote %d files, want 1", len(debs))
	}
	return run.Quiet(exec.CommandContext(ctx, "dpkg-deb", "-x", debs[0], filepath.Join(work, "tree")))
}

// keptSeeds is the number of disks in the cache: one for each of two versions of Kubernetes, and one for other images.
const keptSeeds = 3

// prune removes the least recently used disks, which take a gigabyte each.
func (b *Builder) prune(keep string) {
	disks, _ := filepath.Glob(filepath.Join(b.Store, "seed-*.ext4")) // a valid pattern
	slices.SortFunc(disks, func(x, y string) int { return modified(y).Compare(modified(x)) })
	for i, disk := range disks {
		if i >= keptSeeds && disk != keep {
			_ = os.Remove(disk) // a disk that remains only takes space
		}
	}
}

// modified returns the modification time of a file, or the zero time if it is missing.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
