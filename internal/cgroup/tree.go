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

// String is v1 or v2.
func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

// Tree is the cgroups of a node, of which it reads.
type Tree struct {
	fsys    fs.FS
	top     string // of the hierarchy that counts memory, in fsys
	version Version
	buffer  []byte
}

// Leaves is a file system that can tell without reading a folder that no folder is in it.
type Leaves interface {
	Leaf(dir string) bool
}

// Keeper is a file system whose files of one line can stay open.
type Keeper interface {
	// Keep opens a file of which each read begins at its start, and fails once its cgroup has gone.
	Keep(name string) (io.ReadCloser, error)
}

// ErrNoMemoryController means that memory is counted nowhere below the root.
var ErrNoMemoryController = errors.New("no cgroup hierarchy counts memory here: neither memory/memory.stat (v1) nor " +
	"cgroup.controllers with memory (v2) is there")

// fileMost is how much of a file is read. memory.stat has 1 to 4 KiB; cgroup.procs of 10,000 processes has 80 KiB.
const fileMost = 128 << 10

// Open finds out which version counts memory. fsys is /sys/fs/cgroup of the node. A Tree is for one goroutine.
func Open(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys, buffer: make([]byte, fileMost)}
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

// Container is where a container's memory is counted.
type Container struct {
	Ref

	Dir    string // for [Tree.Read]
	PodDir string // of the pod's cgroup, which all its containers share
}

const (
	// searchAll: "kubepods" is at the top, or up to two cgroups below it (cgroupRoot of the kubelet). Down to there all
	// cgroups are searched; deeper, only those named kubepods.
	searchAll = 2
	// searchMost: from there, a class of service and the pods themselves.
	searchMost = searchAll + 2
	// containersMost is far above the 110 to 250 pods of a node.
	containersMost = 8192
)

// Containers lists the containers of pods, by the names of their cgroups, and the cgroups in which those of pods and
// containers are created.
func (t *Tree) Containers() (containers []Container, parents []string, err error) {
	s := search{tree: t}
	err = s.below(t.top, 0)
	return s.containers, s.parents, err
}

// search is what was found so far.
type search struct {
	tree       *Tree
	containers []Container
	parents    []string
}

// below searches the cgroups in a cgroup that is so far below the top.
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
		} else if depth < searchAll || depth < searchMost && strings.Contains(child, "kubepods") {
			err = s.below(child, depth+1)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it went away meanwhile
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
		if id, ok := containerID(name); ok && len(s.containers) < containersMost {
			s.containers = append(s.containers, Container{Ref: Ref{uid, id}, Dir: path.Join(dir, name), PodDir: dir})
		}
	}
	return nil
}

// entriesMost of a directory are read: cgroups and some sixty files. Whoever may make cgroups may make any number.
const entriesMost = 2 * containersMost

// children are the cgroups in dir. It reads the directory unsorted and without looking at what it finds.
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
	entries, err := folder.ReadDir(entriesMost)
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

// read returns at most fileMost bytes of a file, which are good until the next read.
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
