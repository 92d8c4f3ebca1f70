// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause holds the namespaces of a pod and collects its orphans: it is the first process of every pod sandbox.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-children:
			reap()
		}
	}
}

// reap collects every child that has ended: with a shared process namespace, orphans of all containers become ours.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}
