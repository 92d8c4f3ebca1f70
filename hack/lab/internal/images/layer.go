// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// epoch is the time of all files and images, so that two builds are equal. UTC is the same zone on every machine.
var epoch = time.Unix(0, 0).UTC()

// User is the user ID in the image, the same as in distroless images. As a number, it works with runAsNonRoot.
const User = 65532

// layer writes one filesystem layer. It writes each path once and ignores later entries with the same name.
type layer struct {
	tar  *tar.Writer
	seen map[string]bool // the paths that are written
}

func writeLayer(file string, fill func(*layer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	l := &layer{tar: tar.NewWriter(f), seen: map[string]bool{}}
	return errors.Join(fill(l), l.tar.Close(), f.Close())
}

// skeleton adds the directories and files that every root filesystem needs.
func (l *layer) skeleton() error {
	dirs := []struct {
		name string
		mode int64
	}{
		{"dev", 0o755}, {"etc", 0o755}, {"home", 0o755}, {"proc", 0o555}, {"run", 0o755}, {"sys", 0o555}, {"tmp", 0o1777},
		{"var", 0o755},
	}
	for _, d := range dirs {
		if err := l.dir(d.name, d.mode, 0); err != nil {
			return err
		}
	}
	if err := l.dir("home/nonroot", 0o755, User); err != nil {
		return err
	}
	files := map[string]string{
		"etc/passwd": fmt.Sprintf(
			"root:x:0:0:root:/root:/bin/sh\n"+
				"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\nnonroot:x:%d:%[1]d:nonroot:/home/nonroot:/bin/sh\n",
			User,
		),
		"etc/group":         fmt.Sprintf("root:x:0:\nnogroup:x:65534:\nnonroot:x:%d:\n", User),
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := l.text(name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

func (l *layer) dir(name string, mode int64, owner int) error {
	return l.entry(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Uid: owner, Gid: owner}, nil)
}

func (l *layer) text(name, text string) error {
	return l.entry(
		&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}, strings.NewReader(text),
	)
}

// file adds a file of the machine.
func (l *layer) file(name string, mode int64, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := l.parents(name); err != nil {
		return err
	}
	return l.entry(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}, f)
}

func (l *layer) links(links map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := l.parents(name); err != nil {
			return err
		}
		if err := l.entry(
			&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: links[name], Mode: 0o777}, nil,
		); err != nil {
			return err
		}
	}
	return nil
}

// parents adds the directories above a path, so that their modes do not depend on who unpacks the layer.
func (l *layer) parents(name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	if err := l.parents(dir); err != nil {
		return err
	}
	return l.dir(dir, 0o755, 0)
}

func (l *layer) entry(h *tar.Header, content io.Reader) error {
	key := strings.TrimSuffix(h.Name, "/")
	if l.seen[key] {
		return nil
	}
	l.seen[key] = true
	h.ModTime, h.AccessTime, h.ChangeTime = epoch, time.Time{}, time.Time{}
	h.Uname, h.Gname = "", ""
	h.PAXRecords, h.Format = nil, tar.FormatUnknown
	if err := l.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("adding %s: %w", h.Name, err)
	}
	if content == nil {
		return nil
	}
	if _, err := io.Copy(l.tar, content); err != nil {
		return fmt.Errorf("adding %s: %w", h.Name, err)
	}
	return nil
}
