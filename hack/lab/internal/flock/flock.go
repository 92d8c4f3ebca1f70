// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package flock makes processes that share the lab's cache or state take turns. The kernel drops a lock with the
// process that holds it, so a crash never leaves one behind.
package flock

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock waits until it alone holds the lock file, and returns what gives it back. It reports once that it has to wait.
func Lock(ctx context.Context, path string, say func(format string, args ...any)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	for tries := 0; ; tries++ {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if tries == 0 {
			say("Waiting for another command of the lab, which holds %s", path)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another lab that holds %s: %w", path, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
