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

// Version is the version of the cgroup hierarchy that counts memory.
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
	top     string // path in fsys of the hierarchy that counts memory
	version Version
	buffer  []byte
}

// LeafChecker is a file system that can report without reading a directory that it has no subdirectories.
type LeafChecker interface {
	Leaf(dir string) bool
}

// FileKeeper is a file system that can keep one-line files open.
type FileKeeper interface {
	// Keep opens a file. Each Read begins at the start of the file, and fails after the cgroup was removed.
	Keep(name string) (io.ReadCloser, error)
}

// ErrNoMemoryController means that no cgroup hierarchy counts memory.
var ErrNoMemoryController = errors.New("no cgroup hierarchy counts memory: neither memory/memory.stat (v1) nor " +
	"cgroup.controllers with memory (v2) exists")

// maxFile bounds the bytes read of a file. memory.stat has 1 to 4 KiB; cgroup.procs has 80 KiB for 10,000 processes.
const maxFile = 128 << 10

// Open returns the Tree of fsys, the node's /sys/fs/cgroup. A Tree is not safe for concurrent use.
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

// Version returns the version of the hierarchy that counts memory.
func (t *Tree) Version() Version { return t.version }

// Container locates the cgroups of a container.
type Container struct {
	Ref

	Dir    string // of its cgroup, for [Tree.Gauge]
	PodDir string // of the pod's cgroup, which all its containers share
}

const (
	// searchAll is the depth to which all cgroups are searched: "kubepods" is at the top, or up to two cgroups below
	// (cgroupRoot of the kubelet). Deeper, only those below kubepods are searched.
	searchAll = 2
	// maxSearch is the depth of pods: kubepods, the QoS class, the pod.
	maxSearch = searchAll + 2
	// maxContainers is far above a node's 110 to 250 pods.
	maxContainers = 8192
)

// Containers returns the containers of pods by their cgroups. parents may directly contain pods or containers.
func (t *Tree) Containers() (containers []Container, parents []string, err error) {
	s := search{tree: t}
	err = s.below(t.top, 0)
	return s.containers, s.parents, err
}

// search is the state of [Tree.Containers].
type search struct {
	tree       *Tree
	containers []Container
	parents    []string
}

// below searches the cgroups in dir, which is at this depth.
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

// maxEntries bounds the entries read of a directory: some sixty files, and cgroups, which a process may create.
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
