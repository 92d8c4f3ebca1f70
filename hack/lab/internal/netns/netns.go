// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package netns gives the cluster a network namespace of its own, so that nothing it does (bridges, routes, listening
// ports) touches the machine's network, and lets code and processes of the machine step into it.
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

// Network is what the namespace holds besides its loopback device.
type Network struct {
	Path     string   // the file that keeps the namespace alive
	Bridge   string   // the device that carries the node's address: a bridge, because not every kernel has dummy devices
	NodeCIDR string   // the node's address with its prefix length
	Local    []string // further addresses the namespace answers on
}

// Create makes the namespace. One that exists is an error: it belongs to another program.
func Create(ctx context.Context, n Network) error {
	if err := pin(n.Path); err != nil {
		return fmt.Errorf("making the network namespace: %w", err)
	}
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", n.Bridge, "type", "bridge"},
		{"addr", "add", n.NodeCIDR, "dev", n.Bridge},
		{"link", "set", n.Bridge, "up"},
		// There is nowhere to go, but Kubernetes looks for the interface of the default route to learn the node's
		// address.
		{"route", "add", "default", "dev", n.Bridge},
	}
	for _, addr := range n.Local {
		steps = append(steps, []string{"addr", "add", addr + "/32", "dev", "lo"})
	}
	return Do(n.Path, func() error {
		if err := ip(ctx, steps...); err != nil {
			return err
		}
		// /proc/sys/net shows the namespace of the thread that opens it.
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644)
	})
}

// pin makes a namespace and mounts it on a new file: a namespace lives as long as a process or a mount holds it.
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

// Delete lets go of the namespace; a missing one is fine. Processes that still run inside keep it alive, so end them
// first.
func Delete(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	// EINVAL: a plain file, left by a reboot
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
		// Never unlocked: the runtime ends the thread with the goroutine, so no other code ever runs in the namespace.
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

// Dial connects to an address inside the namespace. The address is an IP and a port: there is no DNS in there.
func Dial(ctx context.Context, path, address string) (conn net.Conn, err error) {
	err = Do(path, func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// Attach makes a pair of devices inside the namespace, unless it is there: one is a port of its bridge, the other is
// left to who reads raw packets from it, a machine behind it. What is sent to podCIDR goes to that machine's address.
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

// Detach removes the route to a machine that is gone, if there is one. The devices stay as long as the namespace: a
// bridge that loses its last port loses its carrier, and with it what the lab's own node has its address on.
func Detach(ctx context.Context, path, podCIDR string) error {
	return Do(path, func() error {
		if out, err := exec.CommandContext(ctx, "ip", "route", "show", podCIDR).Output(); err != nil || len(out) == 0 {
			return err
		}
		return ip(ctx, []string{"route", "del", podCIDR})
	})
}

func ip(ctx context.Context, steps ...[]string) error {
	for _, step := range steps {
		if err := run.Quiet(exec.CommandContext(ctx, "ip", step...)); err != nil {
			return err
		}
	}
	return nil
}
