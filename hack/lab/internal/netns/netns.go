// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package netns manages the cluster's network namespace, so that its bridges, routes and listening ports do not change
// the machine's network. Code and processes of the machine can run inside it.
package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/hack/lab/internal/run"
)

// Network specifies a namespace and its devices.
type Network struct {
	Path     string   // the file on which the namespace is mounted
	Bridge   string   // the device with the node's address: a bridge, because not every kernel has dummy devices
	NodeCIDR string   // the node's address with its prefix length
	Local    []string // additional addresses, for the loopback device
}

// Create creates the namespace. It fails if the file exists, because the namespace then belongs to another program.
func Create(ctx context.Context, n Network) error {
	if err := pin(n.Path); err != nil {
		return fmt.Errorf("creating the network namespace: %w", err)
	}
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", n.Bridge, "type", "bridge"},
		{"addr", "add", n.NodeCIDR, "dev", n.Bridge},
		{"link", "set", n.Bridge, "up"},
		// The route leads nowhere, but Kubernetes takes the node's address from the interface of the default route.
		{"route", "add", "default", "dev", n.Bridge},
	}
	for _, addr := range n.Local {
		steps = append(steps, []string{"addr", "add", addr + "/32", "dev", "lo"})
	}
	return Do(n.Path, func() error {
		if err := ip(ctx, steps...); err != nil {
			return err
		}
		// /proc/sys/net has the settings of the namespace of the thread that opens it.
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644)
	})
}

// pin creates a namespace and mounts it on a new file. A namespace exists as long as a process or a mount refers to it.
func pin(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with its new namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "", unix.MS_BIND, "")
	}()
	return <-result
}

// Delete unmounts the namespace and removes its file. A missing one is not an error. Stop the processes inside first,
// because they keep the namespace alive.
func Delete(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	// EINVAL: after a reboot it is a plain file
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting the network namespace: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the network namespace: %w", err)
	}
	return nil
}

// Do runs fn on a thread inside the namespace. Processes that fn starts and sockets that it opens belong to the
// namespace; goroutines that it starts do not.
func Do(path string, fn func() error) error {
	result := make(chan error, 1)
	go func() {
		// Never unlocked, so that the thread ends with the goroutine and runs no other code in the namespace.
		runtime.LockOSThread()
		result <- func() error {
			f, err := os.Open(path)
			if err != nil {
				return fmt.Errorf("opening the network namespace (is the lab up?): %w", err)
			}
			defer f.Close()
			if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("entering the network namespace %s: %w", path, err)
			}
			return fn()
		}()
	}()
	return <-result
}

// Dial connects to a TCP address inside the namespace. The address is an IP address and a port: there is no DNS.
func Dial(ctx context.Context, path, address string) (conn net.Conn, err error) {
	err = Do(path, func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// Attach connects a guest to the bridge. It creates a veth pair inside the namespace, unless it exists: one end is a
// port of the bridge, and the guest reads and writes raw packets at the other end, device. Packets to podCIDR are
// routed to the guest's address.
func Attach(ctx context.Context, path, bridge, device, podCIDR, address string) error {
	port := device + "p"
	return Do(path, func() error {
		if exec.CommandContext(ctx, "ip", "link", "show", device).Run() != nil {
			if err := ip(ctx, []string{"link", "add", device, "type", "veth", "peer", "name", port}); err != nil {
				return err
			}
		}
		return ip(ctx,
			[]string{"link", "set", port, "master", bridge},
			[]string{"link", "set", port, "up"},
			[]string{"link", "set", device, "up"},
			[]string{"route", "replace", podCIDR, "via", address},
		)
	})
}

// Detach removes the route to a guest that has ended. It keeps the devices: without a port the bridge would lose its
// carrier, and the first node's address, which is on the bridge, would not work.
func Detach(ctx context.Context, path, podCIDR string) error {
	return Do(path, func() error {
		if out, err := exec.CommandContext(ctx, "ip", "route", "show", podCIDR).Output(); err != nil || len(out) == 0 {
			return err
		}
		return ip(ctx, []string{"route", "del", podCIDR})
	})
}

// ip runs one ip command for each step.
func ip(ctx context.Context, steps ...[]string) error {
	for _, step := range steps {
		if err := run.Quiet(exec.CommandContext(ctx, "ip", step...)); err != nil {
			return err
		}
	}
	return nil
}
