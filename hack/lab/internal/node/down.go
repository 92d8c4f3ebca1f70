// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/process"
	"github.com/memfit/memfit/hack/lab/internal/uml"
)

// downPauses are the waits between the rounds of Down. A machine that is busy with something else needs a while to let
// go of hundreds of containers, and all of them together are less than a person would wait before trying again.
var downPauses = []time.Duration{time.Second, 5 * time.Second, 10 * time.Second}

// Down ends everything that belongs to a lab on this machine and removes what it left, whether it was healthy, crashed
// halfway or was cut off by a reboot. With nothing there it does nothing. The cache stays. What fails is told and tried
// again.
func (n *Node) Down(note func(format string, args ...any)) error {
	return inRounds(n.downOnce, downPauses, note, time.Sleep)
}

// inRounds tries until it works or no pause is left.
func inRounds(
	try func() error, pauses []time.Duration, note func(format string, args ...any), sleep func(time.Duration),
) error {
	err := try()
	for _, pause := range pauses {
		if err == nil {
			return nil
		}
		note(
			"Not everything of the lab is gone, the next try is in %s: %s", pause, strings.ReplaceAll(err.Error(), "\n", "; "),
		)
		sleep(pause)
		err = try()
	}
	return err
}

// downOnce goes through all steps once.
//
// The order matters: what starts or restarts others goes first (the kubelet, then containerd, which would start a
// process to tidy up after each shim), then containers, their shims, the processes that those ran, and the daemons;
// mounts only when no process uses them, cgroups only when they are empty.
func (n *Node) downOnce() error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"ending the kubelet", func() error { return n.stop("kubelet") }},
		{"ending containerd", func() error { return n.stop("containerd") }},
		{"ending the containers", n.stopContainers},
		{"ending the container shims", func() error { return n.sweep(n.isShim) }},
		{"ending the daemons", n.stopAll},
		{"ending unrecorded processes", func() error { return n.sweep(n.isStray) }},
		// What kubelet, containerd and shims had running: runc, network plugins, mount. They write where files are about to
		// be removed.
		{"ending what is in the network namespace", func() error { return process.End(process.Inside(n.Layout.NetNS())) }},
		{"ending builds that were cut off", func() error { return uml.EndOrphans(n.Layout.Kernels()) }},
		{"ending late containers", n.stopContainers},
		{"removing the network namespace", func() error { return netns.Delete(n.Layout.NetNS()) }},
		{"unmounting", n.unmount},
		{"removing the cgroups", func() error { return retry(func() error { return removeCgroups(n.Layout.CgroupRoot()) }) }},
		{"restoring what the machine was like, and removing files", n.forget},
	}
	var failed error
	for _, step := range steps {
		// Go on after a failure: the more is gone, the less the next try has to do.
		if err := step.do(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", step.what, err))
		}
	}
	return failed
}

func (n *Node) stop(name string) error {
	records, err := n.store().List()
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Name == name {
			return r.Stop()
		}
	}
	return nil // not remembered: the sweep looks for it
}

// stopContainers ends whatever runs in the lab's cgroups. Containers of a lab that goes away get no grace: nothing they
// could save outlives it.
func (n *Node) stopContainers() error {
	for range 10 { // a process that forks while we list is found in the next round
		pids, err := cgroupPIDs(n.Layout.CgroupRoot())
		if err != nil || len(pids) == 0 {
			return err
		}
		var records []process.Record
		for _, pid := range pids {
			if r, ok := process.ByPID(pid); ok {
				records = append(records, r)
			}
		}
		if err := process.End(records); err != nil {
			return err
		}
	}
	return errors.New("the lab's cgroups fill up again as fast as they are emptied")
}

// stopAll ends what was written down, last started first. Nothing is asked politely: a draining API server takes up to
// a minute, and all its data is about to be deleted.
func (n *Node) stopAll() error {
	records, err := n.store().List()
	if err != nil {
		return err
	}
	var failed error
	for _, r := range slices.Backward(records) {
		if err := r.Stop(); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		failed = errors.Join(failed, n.store().Forget(r.Name))
	}
	return failed
}

// isShim knows the lab's own shims: they carry the address of the containerd that started them.
func (n *Node) isShim(args []string) bool {
	return filepath.Base(args[0]) == "containerd-shim-runc-v2" && slices.Contains(args, n.Layout.ContainerdSocket())
}

// isStray knows daemons whose record was lost: they are started from the cache or the state directory and their
// arguments lead into the state directory or the namespace.
func (n *Node) isStray(args []string) bool {
	ours := slices.ContainsFunc([]string{n.Layout.Bin(), n.Layout.Kernels(), n.Layout.State}, func(dir string) bool {
		return strings.HasPrefix(args[0], dir+"/")
	})
	return ours && slices.ContainsFunc(args[1:], func(arg string) bool {
		return strings.Contains(arg, n.Layout.State+"/") || strings.Contains(arg, n.Layout.Run+"/") ||
			arg == "--netns="+n.Layout.NetNS()
	})
}

func (n *Node) sweep(match func(args []string) bool) error {
	return process.End(process.Find(match))
}

// unmount removes every mount below the lab's own directories, the deepest first.
func (n *Node) unmount() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("listing mounts: %w", err)
	}
	var failed error
	for _, point := range slices.Backward(mountsBelow(data, n.Layout.State, n.Layout.Run)) {
		err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			failed = errors.Join(failed, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return failed
}

// mountsBelow reads /proc/PID/mountinfo and returns the mount points below the directories, in the order they were
// mounted.
func mountsBelow(mountinfo []byte, dirs ...string) []string {
	var points []string
	for lines := bufio.NewScanner(bytes.NewReader(mountinfo)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(point, dir+"/") }) {
			points = append(points, point)
		}
	}
	return points
}

// unescape undoes the kernel's octal escapes: a space in a path is written \040.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// forget puts the machine back and removes the state. In this order and only so: the snapshot of the machine is part of
// the state, and the next try needs it.
func (n *Node) forget() error {
	if err := machine.RestoreSnapshot(n.snapshot()); err != nil {
		return err
	}
	return n.removeFiles()
}

// removeFiles removes the state. A mount that is still there would turn this into deleting what is mounted, so it
// refuses.
func (n *Node) removeFiles() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("listing mounts: %w", err)
	}
	if left := mountsBelow(data, n.Layout.State, n.Layout.Run); len(left) > 0 {
		return fmt.Errorf("%s is still mounted: unmount it and run `lab down` again", left[0])
	}
	leftovers := []string{n.Layout.Run, n.Layout.State}
	// The CNI library keeps the result of every ADD in a directory that all its users share.
	results, _ := filepath.Glob("/var/lib/cni/results/" + n.Layout.Name + "-pods-*") // a well-formed pattern
	for _, path := range append(leftovers, results...) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return nil
}

// retry gives the kernel time to let go of what processes used a moment ago.
func retry(do func() error) error {
	var err error
	for range 50 {
		if err = do(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
