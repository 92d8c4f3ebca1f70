// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"strconv"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// color is one color of the palette, for a picture and for a terminal.
type color struct {
	// hex is a color distinguishable with any kind of color vision: the palette of Okabe and Ito (2008), "Color Universal
	// Design".
	hex string
	// background is the bright background of a terminal (aixterm), on which black letters are readable.
	background int
}

// palette has the colors of parts, then those of other memory.
var palette = [...]color{
	{"#0072B2", 104}, {"#E69F00", 103}, {"#009E73", 102}, {"#CC79A7", 105}, {"#56B4E9", 106}, {"#D55E00", 101},
	{"#F0E442", 43}, {"#7F5539", 46},
	{"#9A9A9A", 47}, {"#404040", 100}, {"#DCDCDC", 107},
}

// Indices into the palette.
const (
	ownColors        = 8 // number of parts with their own color
	smallerColor     = 8
	unexplainedColor = 9
	besideColor      = 10
)

// solid is text on the part's color, for memory in use.
func (p *Part) solid(c listing.Colors, text string) string {
	return c.Paint("30;"+strconv.Itoa(palette[p.Color].background), text)
}

// faint is text in the part's color without a background, for free memory.
func (p *Part) faint(c listing.Colors, text string) string {
	const foreground = -10 // offset from the background of the same color
	return c.Paint(strconv.Itoa(palette[p.Color].background+foreground), text)
}
