// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package flock is a lock between processes that share the lab's cache or state. The kernel releases the lock when its
// holder ends, also after a crash.
package flock

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock waits until it holds the lock file at path, and returns a function that releases it. If it has to wait, it calls
// note once.
func Lock(ctx context.Context, path string, note func(format string, args ...any)) (unlock func(), err error) {
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
			note("Waiting for another command of the lab, which holds %s", path)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another command of the lab, which holds %s: %w", path, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
