// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package listing

// Colors reports whether a terminal shows them.
type Colors bool

// The colors, as terminals number them.
const (
	Bold   = "1"
	Red    = "31"
	Yellow = "33"
)

// Paint colors a text.
func (c Colors) Paint(color, text string) string {
	if !c || text == "" || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
