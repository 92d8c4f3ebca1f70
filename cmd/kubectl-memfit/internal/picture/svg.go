// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/memfit/memfit/internal/pagemap"
)

// Measures of the picture, in pixels.
const (
	margin      = 20
	inner       = 960 // width of a bar
	blockSide   = 8
	blocksInRow = inner / blockSide
)

//go:embed picture.svg.tmpl
var source string

var pictureTemplate = template.Must(template.New("picture").Parse(source))

// canvas is the input of the template. It places the elements of the picture one below the other.
type canvas struct {
	*Pod

	Palette []color
	Height  int
	y       int // top of the next element
}

// Take returns the top of the next element and reserves its height.
func (v *canvas) Take(height int) int {
	v.y += height
	return v.y - height
}

// WriteSVG draws a pod as SVG. It executes the template twice, because the first line has the height of the picture.
func (p *Pod) WriteSVG(w io.Writer) error {
	measured := canvas{Pod: p, Palette: palette[:], y: margin}
	if err := pictureTemplate.Execute(io.Discard, &measured); err != nil {
		return err
	}
	return pictureTemplate.Execute(w, &canvas{Pod: p, Palette: palette[:], y: margin, Height: measured.y + margin})
}

// piece is a colored part of a row. Class is a CSS class: the state and the color.
type piece struct {
	X, Width     int
	Class, Title string
}

// row is a bar, or a row of the blocks of a region.
type row struct {
	Pieces []piece
	End    int
}

// add adds a piece at the end of a row, or a gap for pages that are not in RAM.
func (r *row) add(width int, state pagemap.State, color int, title string) {
	if width > 0 && state != pagemap.Absent {
		r.Pieces = append(r.Pieces, piece{r.End, width, fmt.Sprintf("%c%d", state, color), title})
	}
	r.End += width
}

// Segments returns the pieces of the bar: for each part the memory in use, then the free memory.
func (c *Container) Segments() []piece {
	var bar row
	inUse, free := c.cells(inner)
	for i := range c.Parts {
		p := &c.Parts[i]
		bar.add(inUse[i], pagemap.InUse, p.Color, fmt.Sprintf("%s: %s in use", p.Name, p.Size.Minus(p.Free)))
		bar.add(free[i], pagemap.Free, p.Color, fmt.Sprintf("%s: %s resident and free", p.Name, p.Free))
	}
	return bar.Pieces
}

// LimitX returns the x coordinate of the limit on the bar.
func (c *Container) LimitX() int { return int(inner * float64(c.Limit) / float64(c.scale())) }

// Rows returns the blocks of a region in rows of small squares. Pages that are not in RAM are gaps.
func (p *Pages) Rows() (all []row) {
	for _, runs := range rows(p.Runs, blocksInRow) {
		var r row
		for _, run := range runs {
			r.add(run.Blocks*blockSide, run.State, p.Color, "")
		}
		all = append(all, r)
	}
	return all
}
