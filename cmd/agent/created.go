// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"

	"github.com/memfit/memfit/internal/cgroup"
)

// created returns a function that tells whether the kernel has created a cgroup of a pod or a container since it was
// asked last. A container that dies in its first second is over before the API server tells that it runs.
func created(ctx context.Context, root string, log *slog.Logger) (func() bool, error) {
	tree, err := cgroup.Open(folder(root)) // of its own: a tree serves one goroutine
	if err != nil {
		return nil, err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", root, err)
	}
	var changed atomic.Bool
	watch := func() (err error) {
		parents, err := tree.Parents()
		for _, dir := range parents {
			err = errors.Join(err, watcher.Add(filepath.Join(root, dir)))
		}
		changed.Store(true) // what came before the watch
		return err
	}
	if err := watch(); err != nil {
		log.Warn("Some cgroups are not watched: containers in them are found within 10 s", "error", err)
	}
	go func() {
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-watcher.Events:
				if e.Has(fsnotify.Create) {
					_ = watch() // what cannot be watched is mostly gone again
				}
			case err := <-watcher.Errors:
				log.Warn("Events of cgroups were lost", "error", err)
				_ = watch()
			}
		}
	}()
	return func() bool { return changed.Swap(false) }, nil
}
