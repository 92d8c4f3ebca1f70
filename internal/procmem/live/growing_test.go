// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/procmem"
)

// TestMappingsOfAProcessWhoseHeapGrows: the kernel writes mappings a few at a time, and one that grew in between comes
// twice. This process grows its own [heap], which Go does not use, while it reads its mappings.
func TestMappingsOfAProcessWhoseHeapGrows(t *testing.T) {
	first, _, _ := unix.RawSyscall(unix.SYS_BRK, 0, 0, 0)
	done := make(chan struct{})
	var growing sync.WaitGroup
	growing.Go(func() {
		defer func() { _, _, _ = unix.RawSyscall(unix.SYS_BRK, first, 0, 0) }()
		for i := uintptr(0); ; i = (i + 1) % 4096 {
			select {
			case <-done:
				return
			default:
				_, _, _ = unix.RawSyscall(unix.SYS_BRK, first+(i+1)*procmem.PageSize, 0, 0)
			}
		}
	})
	defer growing.Wait()
	defer close(done)
	dir := os.DirFS("/proc/self")
	for range 2000 {
		all, err := procmem.Mappings(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(all); i++ {
			if all[i].Start < all[i-1].End {
				t.Fatalf("%x-%x overlaps the one before, which ends at %x", all[i].Start, all[i].End, all[i-1].End)
			}
		}
	}
}
