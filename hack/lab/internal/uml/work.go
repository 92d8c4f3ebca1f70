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

// workSuffix is the suffix of the directory in which an entry of the cache is built. A build holds the entry's lock.
const workSuffix = ".work"

// workDir creates an empty directory to build an entry in. The caller must hold the entry's lock. Files and compilers
// in an existing directory are therefore left from an interrupted build, and workDir removes and kills them.
func workDir(entry string) (string, error) {
	work := entry + workSuffix
	if err := clearWork(work); err != nil {
		return "", err
	}
	return work, os.MkdirAll(work, 0o755)
}

// clearWork kills the processes that work in the directory and removes it.
func clearWork(work string) error {
	if _, err := os.Stat(work); err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(process.End(process.Working(work)), os.RemoveAll(work))
}

// EndOrphans kills processes of interrupted builds and removes their files. It ignores builds that are running, which
// may be of another lab.
func EndOrphans(store string) error {
	works, err := filepath.Glob(filepath.Join(store, "*"+workSuffix))
	if err != nil {
		return err
	}
	// Try each lock once: if it is held, the build is running.
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
