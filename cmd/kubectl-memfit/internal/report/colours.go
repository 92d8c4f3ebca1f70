// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

// Colours turns colours on. Only for terminals; the text is complete without them.
type Colours bool

// The colours, as terminals have had them since ANSI X3.64.
const (
	bold   = "1"
	red    = "31"
	yellow = "33"
)

func (c Colours) paint(colour, text string) string {
	if !c || text == "" || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
