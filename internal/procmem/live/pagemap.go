// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/procmem"
)

// pageRegion and scanArgs are struct page_region and struct pm_scan_arg of linux/fs.h.
type pageRegion struct {
	start, end, categories uint64
}

type scanArgs struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages   uint64
	categoryInverted, categoryMask, categoryAnyOf, returnMask uint64
}

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	isPresent   = 1 << 3     // PAGE_IS_PRESENT
	isZero      = 1 << 5     // PAGE_IS_PFNZERO: the shared page of zeroes, which no RSS counts
	scanLength  = 4096       // most regions that a call returns; 96 KiB
	maxRuns     = 1 << 20    // ranges of one call; 64 MiB with every other page resident has 8,192
)

// ErrScattered is returned for more resident ranges than maxRuns.
var ErrScattered = errors.New("too many separate ranges are resident")

// Resident implements [procmem.Memory]: with PAGEMAP_SCAN of Linux 6.7 (3 ms for 2 GiB), or from the pagemap (20 ms).
func (t *Target) Resident(start, end uint64) ([]procmem.Run, error) {
	start &^= procmem.PageSize - 1
	if !t.noScan {
		runs, err := t.scan(start, end)
		if !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EINVAL) {
			return runs, err
		}
		t.noScan = true
	}
	return t.readPagemap(start, end)
}

func (t *Target) scan(start, end uint64) ([]procmem.Run, error) {
	if t.regions == nil {
		t.regions = make([]pageRegion, scanLength)
	}
	var runs []procmem.Run
	for start < end {
		args := scanArgs{
			size: uint64(unsafe.Sizeof(scanArgs{})), start: start, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&t.regions[0]))), vecLen: scanLength, //nolint:gosec // the kernel fills it
			categoryInverted: isZero, categoryMask: isPresent | isZero, returnMask: isPresent,
		}
		//nolint:gosec // struct pm_scan_arg
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, t.pagemap.Fd(), pagemapScan, uintptr(unsafe.Pointer(&args)))
		runtime.KeepAlive(t.regions)
		if errno != 0 {
			return nil, fmt.Errorf("scanning the pagemap: %w", errno)
		}
		for _, r := range t.regions[:n] {
			runs = appendRun(runs, r.start, r.end)
		}
		if len(runs) > maxRuns {
			return nil, ErrScattered
		}
		if args.walkEnd <= start {
			break
		}
		start = args.walkEnd
	}
	return runs, nil
}

func appendRun(runs []procmem.Run, start, end uint64) []procmem.Run {
	if last := len(runs) - 1; last >= 0 && runs[last].End() == start {
		runs[last].Length += end - start
		return runs
	}
	return append(runs, procmem.Run{Start: start, Length: end - start})
}

// readPagemap reads 8 bytes for each page, with the highest bit set if the page is resident. Zero pages count as
// resident: older kernels distinguish them only for readers that may see page numbers.
func (t *Target) readPagemap(start, end uint64) ([]procmem.Run, error) {
	var runs []procmem.Run
	buf := make([]byte, 32<<10) // 16 MiB of address space
	for start < end {
		pages := min((end-start+procmem.PageSize-1)/procmem.PageSize, uint64(len(buf)/8))
		at := int64(start / procmem.PageSize * 8) //nolint:gosec // at most 2^55
		entries := buf[:8*pages]
		n, err := t.pagemap.ReadAt(entries, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading pagemap: %w", err)
		}
		for i := range n / 8 {
			if binary.LittleEndian.Uint64(buf[8*i:])>>63 != 0 {
				page := start + uint64(i)*procmem.PageSize
				runs = appendRun(runs, page, page+procmem.PageSize)
			}
		}
		if n < len(entries) {
			break
		}
		if len(runs) > maxRuns {
			return nil, ErrScattered
		}
		start += pages * procmem.PageSize
	}
	return runs, nil
}
