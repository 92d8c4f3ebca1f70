// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/memfit/memfit/hack/lab/internal/flock"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// Builder builds components into a store.
type Builder struct {
	All     []Component // what the directory of links may hold
	Modules string      // the folder that holds one pinned module per component
	Store   string      // the cache: one entry per component and key
	Report  *progress.Reporter

	toolchain Toolchain
}

// Ensure builds what the store lacks and returns a directory in which every selected binary is found by name.
//
// Components are built at the same time, two at least: the compiler uses all cores, the linker of a big binary only
// one. Binaries of one component are built one after the other, because they share most packages and the go command
// does not share work between two of its processes.
func (b *Builder) Ensure(ctx context.Context, selected []Component) (view string, err error) {
	if b.toolchain, err = FindToolchain(ctx); err != nil {
		return "", err
	}
	view, err = b.view()
	if err != nil {
		return "", err
	}
	group, ctx := errgroup.WithContext(ctx)
	go b.prefetch(ctx, selected)
	group.SetLimit(max(2, runtime.NumCPU()/2))
	for _, c := range selected {
		group.Go(func() error { return b.component(ctx, c, view) })
	}
	return view, group.Wait()
}

// prefetch downloads the modules of what was never built beside compiling, in the order in which it is built. What
// fails here fails again, and is reported, where it is built.
func (b *Builder) prefetch(ctx context.Context, selected []Component) {
	for _, c := range selected {
		entry, err := b.entry(c)
		if err != nil {
			return
		}
		for _, binary := range c.Binaries {
			if cached(filepath.Join(entry, binary.Name)) {
				continue
			}
			args := slices.Concat([]string{"list", "-deps", "-f="}, c.buildFlags(), []string{binary.Package})
			_ = b.goCommand(ctx, c, args...)
		}
	}
}

// view names the directory of links after the keys of all components, so that every selection shares it.
func (b *Builder) view() (string, error) {
	h := sha256.New()
	for _, c := range b.All {
		files, err := sources(filepath.Join(b.Modules, c.module()), c.Modfile)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, c.Name, Key(c, b.toolchain, files))
	}
	dir := filepath.Join(b.Store, "view-"+hex.EncodeToString(h.Sum(nil))[:16])
	return dir, os.MkdirAll(dir, 0o755)
}

// entry is where the cache has a component, built or not.
func (b *Builder) entry(c Component) (string, error) {
	files, err := sources(filepath.Join(b.Modules, c.module()), c.Modfile)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Store, c.Name+"-"+Key(c, b.toolchain, files)), nil
}

func (b *Builder) component(ctx context.Context, c Component, view string) error {
	entry, err := b.entry(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(entry, 0o755); err != nil {
		return fmt.Errorf("making the cache entry of %s: %w", c.Name, err)
	}
	// Two labs or a lab and a test may want the same entry: the second waits and then finds it built.
	unlock, err := flock.Lock(ctx, entry+".lock", b.Report.Note)
	if err != nil {
		return err
	}
	defer unlock()
	for _, binary := range c.Binaries {
		path := filepath.Join(entry, binary.Name)
		if err := b.binary(ctx, c, binary, path); err != nil {
			return err
		}
		for _, name := range binary.names() {
			if err := link(path, filepath.Join(view, name)); err != nil {
				return err
			}
		}
	}
	for _, file := range c.Files {
		path := filepath.Join(entry, file.Name)
		if err := b.file(ctx, c, file, path); err != nil {
			return err
		}
		if err := link(path, filepath.Join(view, file.Name)); err != nil {
			return err
		}
	}
	return nil
}

// cached reports whether the cache has a file: each gets its name when it is complete.
func cached(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// file copies files of a pinned module into the cache, so that a node starts without the Go module cache.
func (b *Builder) file(ctx context.Context, c Component, file File, path string) error {
	if cached(path) {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", file.Module)
	cmd.Dir = filepath.Join(b.Modules, c.module())
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := run.Output(cmd)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("finding the module %s: %w", file.Module, err)
	}
	paths, err := filepath.Glob(filepath.Join(module.Dir, filepath.FromSlash(file.Glob)))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("the module %s has no %s any more", file.Module, file.Glob)
	}
	var joined bytes.Buffer
	for _, from := range paths {
		data, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("reading a file of %s: %w", file.Module, err)
		}
		joined.WriteString("---\n")
		joined.Write(data)
	}
	if err := os.WriteFile(path+".new", joined.Bytes(), 0o644); err != nil {
		return fmt.Errorf("caching %s: %w", file.Name, err)
	}
	return os.Rename(path+".new", path)
}

// link points name at target, whatever was there before.
func link(target, name string) error {
	tmp := name + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return fmt.Errorf("linking %s: %w", filepath.Base(name), err)
	}
	return os.Rename(tmp, name)
}
