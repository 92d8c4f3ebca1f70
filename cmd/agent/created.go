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
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"

	"github.com/memfit/memfit/internal/cgroup"
)

// watch detects new cgroups, because a container that dies in its first second is gone before the API server reports
// it. A new cgroup is watched before [watch.Created] reports it, so that one listing of cgroups also finds those in it.
type watch struct {
	root    string
	log     *slog.Logger
	watcher *fsnotify.Watcher
	failed  error // of the last call of Watch
	created atomic.Bool

	mu      sync.Mutex
	watched map[string]bool // by directory
}

func newWatch(ctx context.Context, root string, log *slog.Logger) (*watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", root, err)
	}
	w := &watch{root: root, log: log, watcher: watcher, watched: map[string]bool{}}
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
			switch {
			case e.Has(fsnotify.Create):
				if _, container := cgroup.ParsePath(e.Name); !container { // a container's cgroup has no containers in it
					_, _ = w.add(e.Name) // the next search retries
				}
				w.created.Store(true)
			case e.Has(fsnotify.Remove):
				w.forget(e.Name)
			}
		case err := <-w.watcher.Errors:
			w.log.Warn("Some events of cgroups may be lost; listing all cgroups again", "error", err)
			w.forget("")
			w.created.Store(true)
		}
	}
}

// add watches a directory, and reports whether it was not watched before.
func (w *watch) add(dir string) (added bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.watcher.Add(dir); err != nil {
		return false, err
	}
	added = !w.watched[dir]
	w.watched[dir] = true
	return added, nil
}

// forget forgets a removed directory, or all directories ("" as dir), so that the next listing adds their watches again
// if needed. The kernel reports the removal of a cgroup only to the watch of its parent.
func (w *watch) forget(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir == "" {
		clear(w.watched)
		return
	}
	_ = w.watcher.Remove(dir) // a missing watch is fine
	delete(w.watched, dir)
}

// Created reports whether a cgroup may have been created in a watched cgroup since the last call.
func (w *watch) Created() bool { return w.created.Swap(false) }

// Watch watches the cgroups that have children, and reports whether all of them are watched. A new watch makes Created
// return true, because a cgroup may have been created between the search and the watch.
func (w *watch) Watch(parents []string) (all bool) {
	var failed error
	for _, dir := range parents {
		switch added, err := w.add(filepath.Join(w.root, dir)); {
		case added:
			w.created.Store(true)
		case err != nil && !errors.Is(err, fs.ErrNotExist): // ErrNotExist: the cgroup was removed meanwhile
			failed = err
		}
	}
	if failed != nil && w.failed == nil {
		w.log.Warn("Could not watch some cgroups; new containers in them are noticed up to 10 s later", "error", failed,
			"fix", "if inotify watches are used up, raise fs.inotify.max_user_watches")
	}
	w.failed = failed
	return failed == nil
}
