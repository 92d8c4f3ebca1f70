// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// freeAddress returns the address of the port on the loopback, or of another free port if it is taken.
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

// copySelf copies this program to path, from where forwarders run it: `go run` deletes its own binary at its end.
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
