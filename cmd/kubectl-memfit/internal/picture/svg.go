// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/memfit/memfit/internal/pagemap"
)

// Measures of the picture, in pixels.
const (
	pictureWidth = 1000
	margin       = 20
	inner        = pictureWidth - 2*margin
	barHeight    = 44
	lineHeight   = 22
	blockSide    = 8
	blocksInRow  = inner / blockSide
)

// canvas collects elements, one below the other.
type canvas struct {
	b strings.Builder
	y int
}

// WriteSVG draws a pod as a picture: bars, legends and, where the snapshot has one, the map of pages.
func (p *Pod) WriteSVG(w io.Writer) error {
	c := canvas{y: margin}
	c.line(18, "bold", p.Heading)
	for i := range p.Containers {
		c.y += lineHeight / 2
		c.container(&p.Containers[i])
	}
	_, err := fmt.Fprintf(w, svgHead, pictureWidth, c.y+margin, pictureWidth, c.y+margin, escape(p.Heading),
		escape(p.inWords()), patterns())
	if err == nil {
		_, err = io.WriteString(w, c.b.String()+"</svg>\n")
	}
	return err
}

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" ` +
	`aria-labelledby="title words" font-family="system-ui, sans-serif" fill="#1a1a1a">
<title id="title">%s</title>
<desc id="words">%s</desc>
<defs>
%s</defs>
<style>@media (prefers-color-scheme: dark) {
svg { fill: #ececec; } .page { fill: #16181b; } .bound { stroke: #ffffff; }
}</style>
<rect class="page" width="100%%" height="100%%" fill="#ffffff"/>
`

// inWords returns the text alternative of the picture.
func (p *Pod) inWords() string {
	var texts []string
	for i := range p.Containers {
		c := &p.Containers[i]
		texts = append(texts, "Container "+c.Heading+": "+c.summary()+".")
		for j := range c.Parts {
			texts = append(texts, c.Parts[j].words()+".")
		}
	}
	return strings.Join(texts, " ")
}

func (p *Part) words() string {
	text := p.Name + " " + p.Size.String()
	if p.Free > 0 {
		text += ", of which " + p.Free.String() + " free"
	}
	return text
}

// patterns are the hatchings of free (h) and partly free (m) memory in each color.
func patterns() string {
	var b strings.Builder
	for i, c := range palette {
		fmt.Fprintf(&b, `<pattern id="h%d" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<rect width="6" height="6" fill="#ffffff"/><rect width="2" height="6" fill="%s"/></pattern>`+"\n", i, c.hex)
		fmt.Fprintf(&b, `<pattern id="m%d" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<rect width="6" height="6" fill="%s"/><rect width="2" height="6" fill="#ffffff"/></pattern>`+"\n", i, c.hex)
	}
	return b.String()
}

func (v *canvas) container(c *Container) {
	v.line(16, "bold", c.Heading)
	v.line(14, "normal", c.summary())
	if len(c.Parts) > 0 {
		v.bar(c)
		v.legend(c)
	}
	for _, note := range c.Notes {
		v.line(14, "normal", note)
	}
	for i := range c.Pages {
		v.region(&c.Pages[i])
	}
	if len(c.Pages) > 0 && c.NotDrawn > 0 {
		v.line(14, "normal", fmt.Sprintf("Not drawn: %s in smaller regions", c.NotDrawn))
	}
}

// line writes a line of text.
func (v *canvas) line(size int, weight, text string) {
	v.y += lineHeight
	fmt.Fprintf(&v.b, `<text x="%d" y="%d" font-size="%d" font-weight="%s">%s</text>`+"\n", margin, v.y, size, weight,
		escape(text))
}

func (v *canvas) bar(c *Container) {
	v.y += lineHeight / 2
	fmt.Fprintf(&v.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#767676"/>`+"\n", margin, v.y, inner,
		barHeight)
	inUse, free := c.cells(inner)
	x := margin
	for i := range c.Parts {
		p := &c.Parts[i]
		x = v.piece(x, inUse[i], palette[p.Color].hex, p.Name+": "+p.Size.Minus(p.Free).String()+" in use")
		x = v.piece(x, free[i], fmt.Sprintf("url(#h%d)", p.Color), p.Name+": "+p.Free.String()+" resident and free")
	}
	if c.Limit > 0 {
		v.limit(c)
	}
	v.y += barHeight
}

func (v *canvas) piece(x, width int, fill, title string) int {
	if width > 0 {
		fmt.Fprintf(&v.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#ffffff" stroke-width="0.5">`+
			"<title>%s</title></rect>\n", x, v.y, width, barHeight, fill, escape(title))
	}
	return x + width
}

// limit is a line across the bar, with its text below.
func (v *canvas) limit(c *Container) {
	x := margin + int(float64(inner)*float64(c.Limit)/float64(c.scale()))
	anchor := "end"
	if x < pictureWidth/2 {
		anchor = "start"
	}
	fmt.Fprintf(&v.b, `<path class="bound" d="M%d %dV%d" stroke="#000000" stroke-width="3"/>`+"\n", x, v.y-6,
		v.y+barHeight+6)
	fmt.Fprintf(&v.b, `<text x="%d" y="%d" font-size="14" text-anchor="%s">limit %s</text>`+"\n", x,
		v.y+barHeight+lineHeight, anchor, c.Limit)
	v.y += lineHeight
}

// Columns of the legend.
const (
	nameColumn  = 54
	sizeColumn  = 400
	shareColumn = 470
	freeColumn  = 500
)

func (v *canvas) legend(c *Container) {
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.Size == 0 && p.Letter != unexplainedMark {
			continue
		}
		v.y += lineHeight
		fmt.Fprintf(&v.b, `<rect x="%d" y="%d" width="14" height="14" fill="%s" stroke="#767676"/>`, margin, v.y-12,
			palette[p.Color].hex)
		if p.Free > 0 {
			fmt.Fprintf(&v.b, `<rect x="%d" y="%d" width="14" height="14" fill="url(#h%d)" stroke="#767676"/>`, margin+16, v.y-12,
				p.Color)
		}
		v.cell(nameColumn, "start", p.Name)
		v.cell(sizeColumn, "end", p.Size.String())
		v.cell(shareColumn, "end", c.share(p.Size))
		if p.Free > 0 {
			v.cell(freeColumn, "start", p.Free.String()+" resident and free (hatched)")
		}
		v.b.WriteString("\n")
	}
}

func (v *canvas) cell(x int, anchor, text string) {
	fmt.Fprintf(&v.b, `<text x="%d" y="%d" font-size="14" text-anchor="%s">%s</text>`, margin+x, v.y, anchor, escape(text))
}

// region draws the pages of one region, in rows of small squares. Pages that are not in RAM are empty frames.
func (v *canvas) region(p *Pages) {
	v.y += lineHeight / 2
	v.line(14, "normal", p.title())
	v.y += lineHeight / 3
	first := true
	for row := range rows(p.Runs, blocksInRow) {
		x := margin
		for _, r := range row {
			width := r.Blocks * blockSide
			if fill := blockFill(r.State, p.Color); fill != "" {
				fmt.Fprintf(&v.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, x, v.y, width, blockSide-1, fill)
			}
			x += width
		}
		if first || x > margin {
			fmt.Fprintf(&v.b, `<path d="M%d %dH%d" stroke="#b8b8b8" stroke-width="1"/>`+"\n", margin, v.y+blockSide-1, x)
		}
		first = false
		v.y += blockSide
	}
	v.y += lineHeight / 3
}

func blockFill(s pagemap.State, color int) string {
	switch s {
	case pagemap.InUse:
		return palette[color].hex
	case pagemap.Mixed:
		return fmt.Sprintf("url(#m%d)", color)
	case pagemap.Free:
		return fmt.Sprintf("url(#h%d)", color)
	case pagemap.Absent:
	}
	return ""
}

// escape escapes text for XML, and drops characters that XML forbids.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder returns no error
	return b.String()
}
