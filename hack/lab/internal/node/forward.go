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
