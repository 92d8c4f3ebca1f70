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

// Builder builds components into a cache.
type Builder struct {
	All     []Component // all components that the directory of links may have
	Modules string      // the folder with the pinned modules
	Store   string      // the directory of the cache, with one entry per component and key
	Report  *progress.Reporter

	toolchain Toolchain
}

// Ensure builds the selected components that the cache lacks. It returns a directory with links to all their binaries.
//
// At least two components are built in parallel: the compiler uses all cores, but the linker of a big binary only one.
// Binaries of one component are built one after the other, because they share most packages, and two go commands would
// compile these twice.
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

// prefetch downloads the modules of missing binaries in the order in which these are built, while others are compiled.
// It ignores errors, because the build reports them.
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

// view creates the directory of links. Its name has a hash of the keys of all components, so all selections share it.
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

// entry returns the directory of a component in the cache, which may not exist.
func (b *Builder) entry(c Component) (string, error) {
	files, err := sources(filepath.Join(b.Modules, c.module()), c.Modfile)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Store, c.Name+"-"+Key(c, b.toolchain, files)), nil
}

// component builds the missing binaries and files of a component and links all of them into view.
func (b *Builder) component(ctx context.Context, c Component, view string) error {
	entry, err := b.entry(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(entry, 0o755); err != nil {
		return fmt.Errorf("creating the cache entry of %s: %w", c.Name, err)
	}
	// Two processes may need the same entry. The second one waits and then uses it.
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

// cached reports whether the cache has a file. Files get their names when they are complete.
func cached(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// file joins files of a pinned module into one file in the cache, so that a node starts without the Go module cache.
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
		return fmt.Errorf("the module %s has no files %s", file.Module, file.Glob)
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

// link makes name a symbolic link to target. It replaces an existing file.
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
