// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// pageSize is what one look at a mapped file touches. Where pages are larger, some are looked at twice.
const pageSize = 4096

// mapped walks through a memory-mapped file for ever: what a process does with its own program text and libraries.
// Where the file does not fit into what anonymous memory leaves of the limit, every round reads it back from the disk.
func (p *probe) mapped(dir string, size int64, random bool) error {
	path, err := newFile(dir, "mapped", size)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping %s: %w", path, err)
	}
	go func() {
		for {
			p.round(func() { walk(data, random) })
		}
	}()
	return nil
}

// walk touches every page in order, or as many in no order.
func walk(data []byte, random bool) (sum byte) {
	pages := len(data) / pageSize
	for i := range pages {
		if random {
			i = rand.IntN(pages)
		}
		sum += data[i*pageSize]
	}
	return sum
}

// readThrough reads a file from front to back for ever, as a backup or a search does: it fills what is left of the
// limit with page cache that nobody needs again.
func (p *probe) readThrough(dir string, size int64) error {
	path, err := newFile(dir, "read", size)
	if err != nil {
		return err
	}
	go func() {
		for {
			p.round(func() {
				if err := readOnce(path); err != nil {
					slog.Error("Reading", "err", err)
					time.Sleep(time.Second)
				}
			})
		}
	}()
	return nil
}

func readOnce(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return err
}

// round counts one pass over a file and how long it took. The pause keeps a pass that comes from memory from taking a
// whole CPU.
func (p *probe) round(pass func()) {
	began := time.Now()
	pass()
	took := time.Since(began)
	p.mu.Lock()
	p.rounds, p.roundTook = p.rounds+1, took
	p.mu.Unlock()
	time.Sleep(p.pause)
}

// newFile writes a file of that size to the disk, so that its pages can be dropped and read back.
func newFile(dir, name string, size int64) (string, error) {
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for left := size; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return "", fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return path, f.Sync()
}
