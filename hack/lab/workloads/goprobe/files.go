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

// pageSize is the distance between two reads of a mapped file, in bytes. It is the size of the smallest pages.
const pageSize = 4096

// mapped reads a memory-mapped file again and again, as a process does with its own code and libraries. If the limit
// minus anonymous memory is less than the size of the file, every pass reads the file from the disk.
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
			p.pass(func() { walk(data, random) })
		}
	}()
	return nil
}

// walk reads one byte of every page in order, or of as many random pages.
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

// readThrough reads a file from start to end again and again, as a backup or a search does. Its page cache grows up to
// the limit, and is not needed again.
func (p *probe) readThrough(dir string, size int64) error {
	path, err := newFile(dir, "read", size)
	if err != nil {
		return err
	}
	go func() {
		for {
			p.pass(func() {
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

// pass runs one pass over a file, and records it and its duration. The pause limits the CPU time of passes that read
// from memory only.
func (p *probe) pass(read func()) {
	began := time.Now()
	read()
	took := time.Since(began)
	p.mu.Lock()
	p.rounds, p.roundTook = p.rounds+1, took
	p.mu.Unlock()
	time.Sleep(p.pause)
}

// newFile writes a file of size bytes to the disk, so that the kernel can drop its pages and read them again.
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
