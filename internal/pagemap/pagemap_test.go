// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pagemap

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const page = uint64(Page)

// pages are spans of whole pages from a base: pages(b, 0, 2, 5, 6) is pages 0, 1 and 5.
func pages(base uint64, borders ...uint64) (out []Span) {
	for i := 0; i+1 < len(borders); i += 2 {
		out = append(out, Span{base + borders[i]*page, base + borders[i+1]*page})
	}
	return out
}

func TestDraw(t *testing.T) {
	const heap, file = 64 << 20, 1 << 30
	got := Draw([]Region{
		{
			Part: "glibc arenas", Process: 1, Span: Span{heap, heap + 6*page},
			Resident: pages(heap, 0, 4), Free: pages(heap, 1, 2, 3, 6), // free pages that are not resident do not count
		},
		{Part: "glibc arenas", Process: 1, Span: Span{heap + 6*page, heap + 8*page}, Resident: pages(heap, 6, 8)},
		{Part: "glibc arenas", Process: 2, Span: Span{heap + 8*page, heap + 9*page}, Resident: pages(heap, 8, 9)},
		{Part: "program and libraries", Process: 1, Span: Span{file, file + 100*page}},
	})
	want := []DrawnRegion{
		{Part: "glibc arenas", Process: 1, Size: 8 * Page, Block: Page, Resident: 6 * Page, Free: 2 * Page},
		{Part: "glibc arenas", Process: 2, Size: Page, Block: Page, Resident: Page},
	}
	texts := []string{"LFLFA2L2", "L"}
	for i := range got.Regions {
		if text := Text(got.Regions[i].Runs); text != texts[i] {
			t.Errorf("region %d is drawn as %s, want %s", i, text, texts[i])
		}
		got.Regions[i].Runs = nil
	}
	if diff := cmp.Diff(want, got.Regions); diff != "" || got.Rest != 0 {
		t.Errorf("rest %s, regions (-want +got):\n%s", got.Rest, diff)
	}
}

func TestCoarseBlocksAreMixed(t *testing.T) {
	all := Span{0, 8 * page}
	got := Text(runs(all, 2*Page, pages(0, 0, 4, 5, 6, 7, 8), pages(0, 0, 3, 5, 6)))
	if want := "FMFL"; got != want {
		t.Errorf("blocks of two pages are drawn as %s, want %s", got, want)
	}
}

// scattered is a region in which every page is another than the one before, for as long as chance wants: the hardest to
// write.
func scattered(r *rand.Rand, part string, base uint64, n int) Region {
	region := Region{Part: part, Process: 1, Span: Span{base, base + uint64(n)*page}}
	for i := range uint64(n) {
		if r.IntN(3) > 0 {
			region.Resident = append(region.Resident, pages(base, i, i+1)...)
		}
		if r.IntN(2) > 0 {
			region.Free = append(region.Free, pages(base, i, i+1)...)
		}
	}
	return region
}

// TestBounds: whatever there is to draw, a map takes so many bytes, and adds up.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var regions []Region
	var resident, free memory.Bytes
	for i := range 3 * maxRegions {
		one := scattered(r, "glibc arenas", uint64(i)<<40, 1<<(i%15))
		regions = append(regions, one)
		resident += amount(one.Resident)
		free += amount(common(one.Free, one.Resident))
	}
	m := Draw(regions)
	sum, text, least := m.Rest, 0, memory.Max
	for _, d := range m.Regions {
		sum += d.Resident
		least = min(least, d.Resident)
		encoded := Text(d.Runs)
		text += len(encoded)
		back, err := Parse(encoded, d.Size, d.Block)
		if err != nil || !cmp.Equal(back, d.Runs) {
			t.Errorf("a region of %s in blocks of %s cannot be read back: %v", d.Size, d.Block, err)
		}
		checkBlocks(t, &d)
	}
	if sum != resident || len(m.Regions) != maxRegions || text > maxText || text < maxText/2 {
		t.Errorf("%d regions and the rest are %s of %s, in %d bytes of text (%d at most)", len(m.Regions), sum, resident,
			text, maxText)
	}
	if free == 0 || least == 0 {
		t.Error("nothing was drawn that could go wrong")
	}
}

// checkBlocks: resident memory lies in the blocks marked resident, and free memory in those marked free.
func checkBlocks(t *testing.T, d *DrawnRegion) {
	t.Helper()
	var blocks [256]memory.Bytes
	for _, r := range d.Runs {
		blocks[r.State] += memory.Bytes(r.Blocks)
	}
	here, freeHere := blocks[InUse]+blocks[Mixed]+blocks[Free], blocks[Mixed]+blocks[Free]
	if d.Resident > here*d.Block || d.Resident < here*Page || d.Free > freeHere*d.Block || d.Free < freeHere*Page {
		t.Errorf("%s resident and %s free are drawn as %s in blocks of %s", d.Resident, d.Free, Text(d.Runs), d.Block)
	}
	if d.Block == Page && (d.Resident != here*Page || d.Free != blocks[Free]*Page) {
		t.Errorf("%s resident and %s free are drawn as %s, page by page", d.Resident, d.Free, Text(d.Runs))
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"L3":                    "1 blocks are missing",
		"L5":                    "it has more blocks than its region",
		"L2X2":                  `"X" is not a state of a block`,
		"L0F4":                  `"0" is not a number of blocks`,
		"L99999999999999999999": `"9999999999" is not a number of blocks`,
		"4":                     `"4" is not a state of a block`,
	} {
		if runs, err := Parse(text, 4*Page, Page); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v; want %s", text, runs, err, want)
		}
	}
	for _, block := range []memory.Bytes{0, -1, 1} {
		if _, err := Parse("L", 1, block); err == nil {
			t.Errorf("a block of %d bytes is taken", block)
		}
	}
}

// parseBudget is what reading one region's runs may take: a run is 16 bytes in memory for one of text, and the list of
// them grows by doubling.
var parseBudget = budget.Budget{Bytes: 64 << 10, PerByte: 64, CPU: time.Second}

// FuzzParse: invalid runs in a snapshot are refused, or are exactly the blocks of their region.
func FuzzParse(f *testing.F) {
	f.Add("L12F3A", int64(16*Page), int64(Page))
	f.Add("LFLFLFLFMA99", int64(1<<40), int64(1<<30))
	f.Add("L-1", int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, text string, size, block int64) {
		budget.Check(t, parseBudget, len(text), func() {
			runs, err := Parse(text, memory.Bytes(size), memory.Bytes(block))
			if err != nil {
				return
			}
			var blocks int64
			for _, r := range runs {
				blocks += int64(r.Blocks)
			}
			if (blocks-1)*block >= size && size > 0 || blocks > maxBlocks || blocks*block < size {
				t.Errorf("%q is %d blocks of %d for %d bytes", text, blocks, block, size)
			}
		})
	})
}
