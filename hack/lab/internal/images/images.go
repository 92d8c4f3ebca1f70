// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package images builds container images without Docker and without a registry, as tar files that containerd, kind and
// docker load. An image consists of Debian packages, a static Go program or both. Node.js comes from an npm package, a
// newer Java from a PyPI package.
//
// The name of an image in the cache contains a hash of its recipe. Two builds of one recipe from the same packages are
// equal byte for byte: entries have a fixed time and a fixed order.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/flock"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

// recipeVersion is part of every cache key. Raise it when images are built differently.
const recipeVersion = 2

// Recipe specifies the content of an image. All fields are hashed for the cache key.
type Recipe struct {
	Ref        string            // the name in pod specs
	Debian     []string          // packages; the base system and all dependencies are added
	Node       string            // the version of the npm package with the Node.js binary
	Java       string            `json:",omitempty"` // the version of the PyPI package with Java
	Program    string            // the folder of a Go program, relative to hack/lab
	Links      map[string]string // symbolic links: path in the image to target
	Entrypoint []string
	Env        []string
}

// Workloads returns the images of the lab in the order in which they are built.
func Workloads() []Recipe {
	return []Recipe{
		{Ref: "memfit.test/pause:lab", Program: "workloads/pause", Entrypoint: []string{"/pause"}},
		// The program is static and needs no other files: the base system is for `kubectl exec`.
		{Ref: "memfit.test/goprobe:dev", Debian: []string{"dash"}, Program: "workloads/goprobe",
			Entrypoint: []string{"/goprobe"}},
		{Ref: "memfit.test/node:20", Debian: []string{"libstdc++6"}, Node: "20.20.2",
			Entrypoint: []string{"/usr/local/bin/node"}},
		{
			// The headless JDK has jcmd, which prints the effective flags of a JVM and trims its native heap.
			Ref: "memfit.test/jdk:17", Debian: []string{"openjdk-17-jdk-headless"},
			Env: []string{"JAVA_HOME=/usr/lib/jvm/java-17-openjdk-" + runtime.GOARCH},
			Links: map[string]string{
				"usr/bin/java":  "../lib/jvm/java-17-openjdk-" + runtime.GOARCH + "/bin/java",
				"usr/bin/javac": "../lib/jvm/java-17-openjdk-" + runtime.GOARCH + "/bin/javac",
				"usr/bin/jcmd":  "../lib/jvm/java-17-openjdk-" + runtime.GOARCH + "/bin/jcmd",
			},
			Entrypoint: []string{"/usr/bin/java"},
		},
		{
			// A newer JVM than Debian's, without a compiler: its programs are compiled with jdk:17.
			Ref: "memfit.test/jre:25", Debian: []string{"dash"}, Java: "25.0.2.1", Env: []string{"JAVA_HOME=/" + javaHome},
			Links: map[string]string{
				"usr/bin/java": "../../" + javaHome + "/bin/java", "usr/bin/jcmd": "../../" + javaHome + "/bin/jcmd",
			},
			Entrypoint: []string{"/usr/bin/java"},
		},
		{
			// A JVM that does not see its limit on a kernel without CONFIG_MEMCG_V1, because it lacks JDK-8349988.
			Ref: "memfit.test/old-jre:21", Debian: []string{"dash"}, Java: "21.0.8.2", Env: []string{"JAVA_HOME=/" + javaHome},
			Links:      map[string]string{"usr/bin/java": "../../" + javaHome + "/bin/java"},
			Entrypoint: []string{"/usr/bin/java"},
		},
		{Ref: "memfit.test/ruby:3.1", Debian: []string{"ruby3.1"}, Links: map[string]string{"usr/bin/ruby": "ruby3.1"},
			Entrypoint: []string{"/usr/bin/ruby"}},
		{Ref: "memfit.test/python:3.11", Debian: []string{"python3.11"},
			Links: map[string]string{"usr/bin/python3": "python3.11"}, Entrypoint: []string{"/usr/bin/python3"}},
	}
}

// Select returns the images whose names are in a comma-separated list, without registry and tag: "node,jdk". It always
// includes the pause image, which every pod needs. An empty list selects all images.
func Select(names string) ([]Recipe, error) {
	all := Workloads()
	if names == "" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	selected, known := all[:1:1], []string{all[0].name()}
	for _, r := range all[1:] {
		known = append(known, r.name())
		if slices.Contains(wanted, r.name()) {
			selected = append(selected, r)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown image %q; the images are %s", name, strings.Join(known, ", "))
		}
	}
	return selected, nil
}

// Builder builds images into a cache.
type Builder struct {
	Source string // the path of hack/lab
	Store  string // the directory of the cache
	Report *progress.Reporter

	base *debianBase
}

// Ensure builds the image unless the cache has it, and returns its tar file.
func (b *Builder) Ensure(ctx context.Context, r Recipe) (path string, err error) {
	name, err := b.cacheName(r)
	if err != nil {
		return "", err
	}
	path = filepath.Join(b.Store, name+".tar")
	if err := os.MkdirAll(b.Store, 0o755); err != nil {
		return "", err
	}
	unlock, err := flock.Lock(ctx, path+".lock", b.Report.Note)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		b.Report.Skip(short(r.Ref), "cached")
		return path, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	step := b.Report.Start(short(r.Ref), "building the image")
	if err := b.build(ctx, r, path); err != nil {
		step.Fail()
		return "", fmt.Errorf("building the image %s: %w", r.Ref, err)
	}
	step.Done("built")
	b.prune(r, path)
	return path, nil
}

// prune removes images of older recipes: hundreds of megabytes that are not needed again.
func (b *Builder) prune(r Recipe, keep string) {
	old, _ := filepath.Glob(
		filepath.Join(b.Store, fileName(short(r.Ref))+"-"+strings.Repeat("[0-9a-f]", keyLength)+".tar*"),
	)
	for _, path := range old {
		if path != keep && path != keep+".lock" {
			_ = os.Remove(path) // a file that remains only takes space
		}
	}
}

// keyLength is the number of hex digits of the recipe's hash in file names.
const keyLength = 16

// build writes the image: the layers of Debian packages, then the image's own layer.
func (b *Builder) build(ctx context.Context, r Recipe, path string) error {
	work := path + ".work"
	if err := os.RemoveAll(work); err != nil { // of an interrupted build
		return err
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var layers []string
	var err error
	if len(r.Debian) > 0 {
		if layers, err = b.debianLayers(ctx, r, work); err != nil {
			return err
		}
	}
	own := filepath.Join(work, "own.tar")
	if err := b.ownLayer(ctx, r, work, own); err != nil {
		return err
	}
	return Write(path, r.Ref, Config{Entrypoint: r.Entrypoint, Env: r.Env}, append(layers, own)...)
}

// ownLayer writes the layer of files that are not in Debian packages.
func (b *Builder) ownLayer(ctx context.Context, r Recipe, work, path string) error {
	return writeLayer(path, func(l *layer) error {
		if len(r.Debian) == 0 {
			if err := l.skeleton(); err != nil {
				return err
			}
		}
		if r.Node != "" {
			binary, err := nodeBinary(ctx, r.Node, work)
			if err != nil {
				return err
			}
			if err := l.file("usr/local/bin/node", 0o755, binary); err != nil {
				return err
			}
		}
		if r.Java != "" {
			if err := l.java(ctx, r.Java, work); err != nil {
				return err
			}
		}
		if r.Program != "" {
			binary, err := b.compile(ctx, r.Program, work)
			if err != nil {
				return err
			}
			if err := l.file(filepath.Base(r.Program), 0o755, binary); err != nil {
				return err
			}
		}
		return l.links(r.Links)
	})
}

// cacheName returns the image's name in the cache, with a hash of the recipe and the program's source.
func (b *Builder) cacheName(r Recipe) (string, error) {
	recipe, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s\n", recipeVersion, runtime.GOARCH, recipe)
	if r.Program != "" {
		files, err := filepath.Glob(filepath.Join(b.Source, r.Program, "*.go"))
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf(
				"%s has no Go program: set MEMFIT_LAB_SOURCE to the folder hack/lab of a checkout",
				filepath.Join(b.Source, r.Program),
			)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s %d\n%s", filepath.Base(file), len(data), data)
		}
	}
	return fileName(short(r.Ref)) + "-" + hex.EncodeToString(h.Sum(nil))[:keyLength], nil
}
