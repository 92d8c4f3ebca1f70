// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/fakeproc"
)

const page = procmem.PageSize

// TestMap: two arenas are drawn apart, and the many pages of V8 one behind the other; free pages that are not resident
// are absent, and unrecognized memory is drawn as well.
func TestMap(t *testing.T) {
	const arena1, arena2, v8, other = 1 << 26, 1 << 27, 1 << 30, 1 << 40
	p := fakeproc.New().Map(arena1, 8*page, fakeproc.RW, "").Map(arena2, 4*page, fakeproc.RW, "")
	p.Touch(arena1, 4)
	p.Touch(arena2, 2)
	r := attribution.Result{Regions: []attribution.Region{
		{Start: arena1, End: arena1 + 8*page, Kind: attribution.Arena, RSS: 4 * page},
		{Start: arena2, End: arena2 + 4*page, Kind: attribution.Arena, RSS: 2 * page},
	}}
	r.Free = []procmem.Run{{Start: arena1 + page, Length: 6 * page}, {Start: arena2 + page, Length: page}}
	for i := range uint64(maxSeparate + 1) {
		at := v8 + i*64*page
		p.Map(at, 2*page, fakeproc.RW, "").Touch(at, 1)
		r.Regions = append(r.Regions, attribution.Region{
			Start: at, End: at + 2*page, Kind: attribution.V8Page, RSS: page,
		})
		if i == 1 {
			r.Free = append(r.Free, procmem.Run{Start: at, Length: 2 * page})
		}
	}
	p.Map(other, page, fakeproc.RW, "").Touch(other, 1)
	r.Regions = append(r.Regions,
		attribution.Region{Start: other, End: other + page, Kind: attribution.Other, RSS: page},
		attribution.Region{Start: other + page, End: other + 2*page, Kind: attribution.Files}, // not resident
	)
	var got []string
	for _, one := range drawn(pages(&r, p.Snapshot(), 3), 0, time.Unix(0, 0)).Regions {
		free := "0"
		if one.Free != nil {
			free = one.Free.String()
		}
		got = append(got, fmt.Sprintf("%s of %d: %s %s %s %s", one.Part, one.Process, one.Size.String(),
			one.Resident.String(), free, one.Pages))
	}
	want := []string{
		"V8 heap of 3: 136Ki 68Ki 4Ki LAFA" + strings.Repeat("LA", maxSeparate-1),
		"glibc arenas of 3: 32Ki 16Ki 12Ki LF3A4", "glibc arenas of 3: 16Ki 8Ki 4Ki LFA2", "unexplained of 3: 4Ki 4Ki 0 L",
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}
