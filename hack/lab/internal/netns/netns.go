// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package netns gives the cluster a network namespace of its own, so that nothing it does (bridges, routes, listening
// ports) touches the machine's network, and lets code and processes of the machine step into it.
package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Network is what the namespace holds besides its loopback device.
type Network struct {
	Path     string   // the file that names the namespace, below /run/netns
	Bridge   string   // the device that carries the node's address: a bridge, because not every kernel has dummy devices
	NodeCIDR string   // the node's address with its prefix length
	Local    []string // further addresses the namespace answers on
}

// Create makes the namespace. One that exists is an error: it is somebody's.
func Create(ctx context.Context, n Network) error {
	name := filepath.Base(n.Path)
	if err := ip(ctx, "netns", "add", name); err != nil {
		return err
	}
	in := func(args ...string) error { return ip(ctx, append([]string{"-n", name}, args...)...) }
	steps := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", n.Bridge, "type", "bridge"},
		{"addr", "add", n.NodeCIDR, "dev", n.Bridge},
		{"link", "set", n.Bridge, "up"},
		// There is nowhere to go, but Kubernetes looks for the interface of the default route to learn the node's address.
		{"route", "add", "default", "dev", n.Bridge},
	}
	for _, addr := range n.Local {
		steps = append(steps, []string{"addr", "add", addr + "/32", "dev", "lo"})
	}
	for _, step := range steps {
		if err := in(step...); err != nil {
			return err
		}
	}
	return Do(n.Path, func() error {
		// /proc/sys/net shows the namespace of the thread that opens it.
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644)
	})
}

// Delete removes the namespace with everything in it; a missing one is fine. Processes that still run inside keep it
// alive without its name, so end them first.
func Delete(ctx context.Context, path string) error {
	if !Exists(path) {
		return nil
	}
	if err := ip(ctx, "netns", "delete", filepath.Base(path)); err != nil && Exists(path) {
		// `ip` cannot unmount what is only a plain file: that is what a reboot leaves.
		return os.Remove(path)
	}
	return nil
}

// Exists says whether the namespace has a name.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Do runs fn on a thread inside the namespace. Processes that fn starts and sockets that it opens belong to the namespace;
// goroutines that it starts do not.
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

func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running `ip %s`: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
