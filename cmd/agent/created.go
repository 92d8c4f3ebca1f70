// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

// watch notices cgroups that the kernel creates. A container that dies in its first second is gone before the API
// server reports that it runs.
type watch struct {
	root    string
	log     *slog.Logger
	watcher *fsnotify.Watcher
	parents map[string]bool // that are watched
	failed  error           // why some are not
	created atomic.Bool
}

func newWatch(ctx context.Context, root string, log *slog.Logger) (*watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", root, err)
	}
	w := &watch{root: root, log: log, watcher: watcher}
	go w.run(ctx)
	return w, nil
}

func (w *watch) run(ctx context.Context) {
	defer w.watcher.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.watcher.Events:
			if e.Has(fsnotify.Create) {
				w.created.Store(true)
			}
		case err := <-w.watcher.Errors:
			w.log.Warn("Events of cgroups were lost", "error", err)
			w.created.Store(true)
		}
	}
}

// Created reports whether a cgroup may have been created since the last call in those that are watched.
func (w *watch) Created() bool { return w.created.Swap(false) }

// Watch watches the cgroups that a search found to hold others. What was created in one between the search and the
// watch is found by another search.
func (w *watch) Watch(parents []string) {
	watched, failed := make(map[string]bool, len(parents)), error(nil)
	for _, dir := range parents {
		switch err := w.watcher.Add(filepath.Join(w.root, dir)); {
		case err == nil:
			watched[dir] = true
			if !w.parents[dir] {
				w.created.Store(true)
			}
		case !errors.Is(err, fs.ErrNotExist): // it went away meanwhile
			failed = err
		}
	}
	if failed != nil && w.failed == nil {
		w.log.Warn("Some cgroups are not watched: containers in them are found within 10 s", "error", failed)
	}
	w.parents, w.failed = watched, failed
}
