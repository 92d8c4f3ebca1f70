// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Version of the cgroup hierarchy that counts memory.
type Version int

// The versions. A node with both ("hybrid") counts memory in version 1.
const (
	V1 Version = 1
	V2 Version = 2
)

// String returns "v1" or "v2".
func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

// Tree reads the cgroups of a node.
type Tree struct {
	fsys    fs.FS
	top     string // of the hierarchy that counts memory, in fsys
	version Version
	buffer  []byte
}

// Leaves is a file system that can report without reading a folder that it has no subfolders.
type Leaves interface {
	Leaf(dir string) bool
}

// Keeper is a file system that can keep one-line files open.
type Keeper interface {
	// Keep opens a file that each Read reads from its start. Reads fail after the cgroup was removed.
	Keep(name string) (io.ReadCloser, error)
}

// ErrNoMemoryController means that no cgroup hierarchy counts memory.
var ErrNoMemoryController = errors.New("no cgroup hierarchy counts memory here: neither memory/memory.stat (v1) nor " +
	"cgroup.controllers with memory (v2) exists")

// maxFile bounds the part of a file that is read. memory.stat has 1 to 4 KiB; cgroup.procs of 10,000 processes has 80
// KiB.
const maxFile = 128 << 10

// Open detects the version that counts memory. fsys is the node's /sys/fs/cgroup. A Tree is not safe for concurrent
// use.
func Open(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys, buffer: make([]byte, maxFile)}
	if _, err := fs.Stat(fsys, "memory/memory.stat"); err == nil {
		t.top, t.version = "memory", V1
		return t, nil
	}
	controllers, err := t.read("cgroup.controllers")
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoMemoryController, err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		if controller == "memory" {
			t.top, t.version = ".", V2
			return t, nil
		}
	}
	return nil, ErrNoMemoryController
}

// Version of the hierarchy that counts memory.
func (t *Tree) Version() Version { return t.version }

// Container locates the cgroups of a container.
type Container struct {
	Ref

	Dir    string // for [Tree.Read]
	PodDir string // of the pod's cgroup, which all its containers share
}

const (
	// searchAll: "kubepods" is at the top, or up to two cgroups below it (cgroupRoot of the kubelet). To this depth all
	// cgroups are searched; below, only those named kubepods.
	searchAll = 2
	// maxSearch: below that, the QoS class and the pods.
	maxSearch = searchAll + 2
	// maxContainers is far above a node's 110 to 250 pods.
	maxContainers = 8192
)

// Containers lists the containers of pods, by the names of their cgroups, and the parent cgroups of pods and
// containers.
func (t *Tree) Containers() (containers []Container, parents []string, err error) {
	s := search{tree: t}
	err = s.below(t.top, 0)
	return s.containers, s.parents, err
}

// search is the state of a search.
type search struct {
	tree       *Tree
	containers []Container
	parents    []string
}

// below searches the cgroups in a cgroup at this depth.
func (s *search) below(dir string, depth int) error {
	names, err := s.tree.children(dir)
	if err != nil {
		return err
	}
	if strings.Contains(dir, "kubepods") {
		s.parents = append(s.parents, dir)
	}
	for _, name := range names {
		child := path.Join(dir, name)
		var err error
		if uid, isPod := PodUID(name); isPod {
			err = s.pod(child, uid)
		} else if depth < searchAll || depth < maxSearch && strings.Contains(child, "kubepods") {
			err = s.below(child, depth+1)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return err
		}
	}
	return nil
}

func (s *search) pod(dir, uid string) error {
	names, err := s.tree.children(dir)
	if err != nil {
		return err
	}
	s.parents = append(s.parents, dir)
	for _, name := range names {
		if id, ok := containerID(name); ok && len(s.containers) < maxContainers {
			s.containers = append(s.containers, Container{Ref: Ref{uid, id}, Dir: path.Join(dir, name), PodDir: dir})
		}
	}
	return nil
}

// maxEntries bounds the entries read in a directory: some sixty files, and cgroups, of which a process may create any
// number.
const maxEntries = 2 * maxContainers

// children returns the cgroups in dir, unsorted and without a stat of each.
func (t *Tree) children(dir string) ([]string, error) {
	f, err := t.fsys.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	folder, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	entries, err := folder.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// read returns at most maxFile bytes of a file, valid until the next read.
func (t *Tree) read(name string) ([]byte, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, t.buffer)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return t.buffer[:n], err
}
