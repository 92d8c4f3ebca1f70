// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// barWidth is the width of a bar. On a terminal of 80 columns, it leaves space for the indentation.
const barWidth = 76

// WriteText draws a pod for a terminal. If pages is set, the map of pages is below each bar.
func (p *Pod) WriteText(w io.Writer, colors listing.Colors, pages bool) error {
	var b strings.Builder
	b.WriteString(p.Heading + "\n")
	for i := range p.Containers {
		b.WriteString("\n")
		p.Containers[i].text(&b, colors)
		if pages {
			p.Containers[i].pagesText(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Container) text(b *strings.Builder, colors listing.Colors) {
	b.WriteString(colors.Paint(listing.Bold, c.Heading) + "\n  " + c.Summary() + "\n")
	if len(c.Parts) > 0 {
		b.WriteString("  " + c.bar(colors) + "\n")
		b.WriteString(c.limitMark())
		c.legend(b, colors)
	}
	for _, note := range c.Notes {
		b.WriteString("  - " + note + "\n")
	}
}

// bar returns a letter for each cell: upper case for memory in use, lower case for free memory.
func (c *Container) bar(colors listing.Colors) string {
	var b strings.Builder
	inUse, free := c.cells(barWidth)
	for i := range c.Parts {
		p := &c.Parts[i]
		b.WriteString(p.solid(colors, strings.Repeat(string(p.Letter), inUse[i])))
		b.WriteString(p.faint(colors, strings.Repeat(strings.ToLower(string(p.Letter)), free[i])))
	}
	return b.String()
}

// solid returns text with the part's color as background, for memory in use.
func (p *Part) solid(c listing.Colors, text string) string {
	return c.Paint("30;"+strconv.Itoa(palette[p.Color].background), text)
}

// faint returns text in the part's color without a background, for free memory.
func (p *Part) faint(c listing.Colors, text string) string {
	const foreground = -10 // offset from the background of the same color
	return c.Paint(strconv.Itoa(palette[p.Color].background+foreground), text)
}

// limitMark returns a line that points at the limit.
func (c *Container) limitMark() string {
	if c.Limit == 0 {
		return ""
	}
	at := max(int(float64(c.Limit)*barWidth/float64(c.scale())+0.5)-1, 0) // the last cell below the limit
	label := "limit " + c.Limit.String()
	if len(label) < at {
		return "  " + strings.Repeat(" ", at-len(label)-1) + label + " ^\n"
	}
	return "  " + strings.Repeat(" ", at) + "^ " + label + "\n"
}

func (c *Container) legend(b *strings.Builder, colors listing.Colors) {
	width := 0
	for _, p := range c.Parts {
		width = max(width, utf8.RuneCountInString(p.Name))
	}
	for _, p := range c.Legend() {
		line := fmt.Sprintf(" %-*s %6s %6s", width, p.Name, p.Size, c.Share(p.Size))
		if p.Free > 0 {
			line += fmt.Sprintf("  %s free", p.Free)
		}
		b.WriteString("  " + p.solid(colors, string(p.Letter)) + line + "\n")
	}
	if c.free() > 0 {
		b.WriteString("  Capital letters: in use. Small letters: resident, and free.\n")
	}
}
