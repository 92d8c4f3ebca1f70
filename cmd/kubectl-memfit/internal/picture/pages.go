// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/pagemap"
	"github.com/memfit/memfit/internal/quote"
)

// Pages is one region, block by block.
type Pages struct {
	pagemap.DrawnRegion

	// Color is the color of the region's part in the bar.
	Color int
}

// pages converts the map of a snapshot. Invalid regions count as not drawn.
func (c *Container) pages(m *v1alpha1.MemoryMap) {
	if m == nil {
		return
	}
	c.NotDrawn = report.Bytes(m.Rest)
	for i := range m.Regions {
		r := &m.Regions[i]
		d := pagemap.DrawnRegion{
			Part: quote.Plain(r.Part), Process: r.Process, Size: report.Bytes(&r.Size), Block: report.Bytes(&r.Block),
			Resident: report.Bytes(&r.Resident), Free: report.Bytes(r.Free),
		}
		var err error
		if d.Runs, err = pagemap.Parse(r.Pages, d.Size, d.Block); err != nil {
			c.NotDrawn = c.NotDrawn.Plus(d.Resident)
			c.Notes = append(c.Notes, fmt.Sprintf("the map of a region of %s cannot be read: %v", d.Part, err))
			continue
		}
		c.Pages = append(c.Pages, Pages{d, c.colorOf(d.Part)})
	}
}

// colorOf returns the color of a part in the bar.
func (c *Container) colorOf(name string) int {
	for _, p := range c.Parts {
		if p.Name == name {
			return p.Color
		}
	}
	if name == "" {
		return unexplainedColor
	}
	return smallerColor
}

// Title returns the line above a region.
func (p *Pages) Title() string {
	text := fmt.Sprintf("%s, %s: %s resident", cmp.Or(p.Part, "unexplained"), p.Size, p.Resident)
	if p.Free > 0 {
		text += fmt.Sprintf(", %s of that free", p.Free)
	}
	return text + fmt.Sprintf(" (process %d, a block is %s)", p.Process, p.Block)
}

// The letters of a map on a terminal.
var textBlocks = map[pagemap.State]string{
	pagemap.InUse: "#", pagemap.Mixed: "+", pagemap.Free: "-", pagemap.Absent: ".",
}

const (
	// textRows is the maximum number of rows of a region on a terminal. Blocks of larger regions are merged.
	textRows = 8
	// textRegions is the maximum number of regions on a terminal.
	textRegions = 12
)

func (c *Container) pagesText(b *strings.Builder) {
	if len(c.Pages) == 0 {
		return
	}
	b.WriteString("\n  Pages: # in use, + partly free, - resident and free, . not in RAM\n")
	rest := c.NotDrawn
	for i := range c.Pages {
		p := c.Pages[i]
		if i >= textRegions {
			rest = rest.Plus(p.Resident)
			continue
		}
		p.Runs, p.Block = pagemap.Coarser(p.Runs, p.Block, textRows*barWidth)
		b.WriteString("  " + p.Title() + "\n")
		for _, row := range rows(p.Runs, barWidth) {
			b.WriteString("    ")
			for _, r := range row {
				b.WriteString(strings.Repeat(textBlocks[r.State], r.Blocks))
			}
			b.WriteString("\n")
		}
	}
	if rest > 0 {
		fmt.Fprintf(b, "  Not drawn: %s in smaller regions\n", rest)
	}
}

// rows splits runs into rows of width blocks.
func rows(runs []pagemap.Run, width int) (all [][]pagemap.Run) {
	left := 0 // blocks that fit in the last row
	for _, r := range runs {
		for r.Blocks > 0 {
			if left == 0 {
				all, left = append(all, nil), width
			}
			n, last := min(r.Blocks, left), len(all)-1
			all[last] = append(all[last], pagemap.Run{State: r.State, Blocks: n})
			r.Blocks, left = r.Blocks-n, left-n
		}
	}
	return all
}

// Mapped reports whether any container has a map of pages.
func (p *Pod) Mapped() bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return len(c.Pages) > 0 })
}
