// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/flock"
	"github.com/memfit/memfit/hack/lab/internal/process"
)

// workSuffix names the directory in which an entry of the store is built. Whoever works in there holds the entry's
// lock.
const workSuffix = ".work"

// workDir makes an empty directory to build an entry in. The caller holds the entry's lock, so that what is found in
// it belongs to a build that was cut off: also compilers, which go on when the program that wanted them was killed.
func workDir(entry string) (string, error) {
	work := entry + workSuffix
	if err := clearWork(work); err != nil {
		return "", err
	}
	return work, os.MkdirAll(work, 0o755)
}

func clearWork(work string) error {
	if _, err := os.Stat(work); err != nil {
		return removed(err)
	}
	return errors.Join(process.End(process.Working(work)), os.RemoveAll(work))
}

// EndOrphans ends what builds that were cut off left running, and removes their files. A build that goes on, of
// another lab perhaps, is left alone.
func EndOrphans(store string) error {
	works, err := filepath.Glob(filepath.Join(store, "*"+workSuffix))
	if err != nil {
		return err
	}
	// Tried once: whoever holds the lock is at work.
	once, cancel := context.WithCancel(context.Background())
	cancel()
	var failed error
	for _, work := range works {
		unlock, err := flock.Lock(once, strings.TrimSuffix(work, workSuffix)+".lock", func(string, ...any) {})
		if err != nil {
			continue
		}
		failed = errors.Join(failed, clearWork(work))
		unlock()
	}
	return failed
}
