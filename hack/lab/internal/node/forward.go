// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Forward makes an address inside the namespace reachable on the machine's loopback and returns where.
func (n *Node) Forward(target, listen string) (string, error) {
	if listen == "" {
		var err error
		if listen, err = freeAddress(0); err != nil {
			return "", err
		}
	}
	name := "forward-" + filepath.Base(listen)
	if _, err := n.store().Run(n.forwarder(name, listen, target)); err != nil {
		return "", err
	}
	return listen, waitFor(context.Background(), 5*time.Second, func(context.Context) error {
		conn, err := net.Dial("tcp", listen)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// freeAddress returns the wanted port on the loopback if no one listens there, else a free one.
func freeAddress(port int) (string, error) {
	for _, candidate := range []int{port, 0} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", candidate))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String(), nil
	}
	return "", errors.New("no free port on the loopback")
}

// copySelf puts this very program where the forwarders run it from: `go run` deletes its binary when it ends.
func copySelf(path string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	if err := os.WriteFile(path+".new", data, 0o755); err != nil {
		return fmt.Errorf("copying this program: %w", err)
	}
	return os.Rename(path+".new", path)
}
