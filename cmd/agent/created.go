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

	"github.com/memfit/memfit/internal/cgroup"
)

// created returns a function that reports whether the kernel has created a cgroup of a pod or a container since the
// last call. A container that dies in its first second is gone before the API server reports that it runs. cgroups has
// the files of root.
func created(ctx context.Context, root string, cgroups fs.FS, log *slog.Logger) (func() bool, error) {
	tree, err := cgroup.Open(cgroups) // of its own: a tree serves one goroutine
	if err != nil {
		return nil, err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", root, err)
	}
	w := &watch{root: root, tree: tree, watcher: watcher}
	if err := w.all(); err != nil {
		log.Warn("Some cgroups are not watched: containers in them are found within 10 s", "error", err)
	}
	go w.run(ctx, log)
	return func() bool { return w.changed.Swap(false) }, nil
}

// watch watches the cgroups in which those of pods and containers are created.
type watch struct {
	root    string
	tree    *cgroup.Tree
	watcher *fsnotify.Watcher
	changed atomic.Bool
}

func (w *watch) run(ctx context.Context, log *slog.Logger) {
	defer w.watcher.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.watcher.Events:
			if e.Has(fsnotify.Create) {
				_ = w.created(e.Name) // what cannot be watched is mostly gone again
			}
		case err := <-w.watcher.Errors:
			log.Warn("Events of cgroups were lost", "error", err)
			_ = w.all()
		}
	}
}

// all watches all cgroups that are there.
func (w *watch) all() error {
	defer w.changed.Store(true) // what came before the watch
	return w.add(w.tree.Top())
}

// created watches a cgroup that is new. Of other cgroups nothing is read: on a node where a hundred pods start, each
// costs its own directory.
func (w *watch) created(path string) error {
	defer w.changed.Store(true)
	dir, err := filepath.Rel(w.root, path)
	if err != nil || !cgroup.Parent(dir) {
		return err
	}
	return w.add(dir)
}

// add watches a cgroup and then what it holds, so that a cgroup is either listed or has an event.
func (w *watch) add(dir string) (err error) {
	if cgroup.Parent(dir) {
		err = w.watcher.Add(filepath.Join(w.root, dir))
	}
	below, failed := w.tree.Below(dir)
	err = errors.Join(err, failed)
	for _, child := range below {
		err = errors.Join(err, w.add(child))
	}
	return err
}
