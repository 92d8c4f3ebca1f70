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

// downPauses are the waits between the attempts of Down. A busy machine needs several seconds to release the cgroups of
// hundreds of containers.
var downPauses = []time.Duration{time.Second, 5 * time.Second, 10 * time.Second}

// Down stops all processes of the lab and removes its files, also after a crash or a reboot. If nothing of the lab is
// left, it does nothing. It keeps the cache. After a failure it passes the error to note and tries again.
func (n *Node) Down(note func(format string, args ...any)) error {
	return retryPaused(n.downOnce, downPauses, note, time.Sleep)
}

// retryPaused calls try until it succeeds, at most once more than there are pauses. It returns the last error.
func retryPaused(
	try func() error, pauses []time.Duration, note func(format string, args ...any), sleep func(time.Duration),
) error {
	err := try()
	for _, pause := range pauses {
		if err == nil {
			return nil
		}
		note(
			"Parts of the lab are left, trying again in %s: %s", pause, strings.ReplaceAll(err.Error(), "\n", "; "),
		)
		sleep(pause)
		err = try()
	}
	return err
}

// downOnce runs all steps once.
//
// The order matters. The kubelet and then containerd end first, because they start other processes: containerd starts
// one to clean up after each shim. Containers, shims and the other processes follow. Mounts are removed when no process
// uses them, and cgroups when they are empty.
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
		{"ending processes without a record", func() error { return n.sweep(n.isStray) }},
		// Children of kubelet, containerd and shims (runc, network plugins, mount), which write to directories that are
		// removed below.
		{"ending processes in the network namespace", func() error { return process.End(process.Inside(n.Layout.NetNS())) }},
		{"ending interrupted builds", func() error { return uml.EndOrphans(n.Layout.Kernels()) }},
		{"ending containers that started meanwhile", n.stopContainers},
		{"removing the network namespace", func() error { return netns.Delete(n.Layout.NetNS()) }},
		{"unmounting", n.unmount},
		{"removing the cgroups", func() error { return retry(func() error { return removeCgroups(n.Layout.CgroupRoot()) }) }},
		{"restoring the machine's settings and removing files", n.restoreMachine},
	}
	var failed error
	for _, step := range steps {
		// Continue after a failure: the next attempt then has less to do.
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
	return nil // without a record: isStray finds it later
}

// stopContainers kills all processes in the lab's cgroups. Containers get no grace period, because all their data is
// deleted with the lab.
func (n *Node) stopContainers() error {
	for range 10 { // processes may fork meanwhile
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
	return errors.New("new processes keep starting in the lab's cgroups")
}

// stopAll kills all daemons that have a record, last started first. A graceful end of the API server would take up to a
// minute, and all its data is deleted anyway.
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

// isShim reports whether args are of a shim of the lab's containerd, whose address is one of the arguments.
func (n *Node) isShim(args []string) bool {
	return filepath.Base(args[0]) == "containerd-shim-runc-v2" && slices.Contains(args, n.Layout.ContainerdSocket())
}

// isStray reports whether args are of a daemon of the lab, which may have no record. Its program is in the cache or the
// state directory, and an argument names a path in the lab's directories or its namespace.
func (n *Node) isStray(args []string) bool {
	ours := slices.ContainsFunc([]string{n.Layout.Bin(), n.Layout.Kernels(), n.Layout.State}, func(dir string) bool {
		return strings.HasPrefix(args[0], dir+"/")
	})
	return ours && slices.ContainsFunc(args[1:], func(arg string) bool {
		return strings.Contains(arg, n.Layout.State+"/") || strings.Contains(arg, n.Layout.Run+"/") ||
			arg == "--netns="+n.Layout.NetNS()
	})
}

// sweep kills all processes whose arguments match.
func (n *Node) sweep(match func(args []string) bool) error {
	return process.End(process.Find(match))
}

// unmount removes all mounts below the lab's own directories, last mounted first.
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

// mountsBelow returns the mount points below dirs, in the order of mountinfo, which is the content of
// /proc/PID/mountinfo.
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

// unescape decodes the kernel's octal escapes: \040 is a space.
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

// restoreMachine restores the machine's settings and then removes the lab's files. If the first part fails, the files
// remain: the snapshot among them is needed by the next attempt.
func (n *Node) restoreMachine() error {
	if err := machine.RestoreSnapshot(n.snapshot()); err != nil {
		return err
	}
	return n.removeFiles()
}

// removeFiles removes the lab's directories. It refuses while a mount is left, because it would delete the mounted
// files.
func (n *Node) removeFiles() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("listing mounts: %w", err)
	}
	if left := mountsBelow(data, n.Layout.State, n.Layout.Run); len(left) > 0 {
		return fmt.Errorf("%s is still mounted: unmount it and run `lab down` again", left[0])
	}
	leftovers := []string{n.Layout.Run, n.Layout.State}
	// The CNI library stores the results of ADD in a directory that all its users share.
	results, _ := filepath.Glob("/var/lib/cni/results/" + n.Layout.Name + "-pods-*") // a well-formed pattern
	for _, path := range append(leftovers, results...) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return nil
}

// retry repeats do for up to 5 s, because the kernel releases resources of ended processes late.
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
