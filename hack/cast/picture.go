// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"
)

// Measures of the picture, in units of its viewBox.
const (
	letterWidth, lineHeight = 7.2, 16.0
	margin                  = 14.0
	held                    = 10 * time.Second // the last screen
)

// line is one row of the terminal. All that the demo prints is below what it printed before, so the picture is one
// long sheet of rows which is pulled up behind a window.
type line struct {
	Class string
	Y     float64
	Text  string
	Width float64
}

// step is how far the sheet has been pulled up since a time, in percent of the whole.
type step struct{ At, Up float64 }

//go:embed picture.svg.tmpl
var source string

var pictureTemplate = template.Must(template.New("picture").Parse(source))

// picture is an SVG with all of it and nothing from elsewhere.
func (c *cast) picture() ([]byte, error) {
	all, ends, err := c.rowsOf()
	if err != nil {
		return nil, err
	}
	sheet := c.lines(all)
	height := float64(c.Height) * lineHeight
	up := func(rows int) float64 { return height - float64(rows)*lineHeight }
	times := c.shown()
	whole := times[len(times)-1] + held
	var steps []step
	for i, at := range times {
		s := step{float64(at) / float64(whole) * 100, up(ends[i])}
		switch n := len(steps); {
		case n > 0 && steps[n-1].Up == s.Up:
		case n > 0 && s.At-steps[n-1].At < 0.01: // nobody sees one without the other
			steps[n-1].Up = s.Up
		default:
			steps = append(steps, s)
		}
	}
	var out bytes.Buffer
	err = pictureTemplate.Execute(&out, map[string]any{
		"Title": c.Title, "Lines": sheet, "Steps": steps, "Seconds": whole.Seconds(), "Margin": margin,
		"Width": float64(c.Width)*letterWidth + 2*margin, "Height": height + 2*margin,
		"InnerWidth": float64(c.Width) * letterWidth, "InnerHeight": height,
		"Last": up(len(sheet)),
	})
	return out.Bytes(), err
}

// shown are the times at which a player shows each event: long silences are cut.
func (c *cast) shown() []time.Duration {
	var times []time.Duration
	var at, before time.Duration
	limit := time.Duration(c.IdleTimeLimit * float64(time.Second))
	for _, e := range c.events {
		wait := e.after - before
		if limit > 0 {
			wait = min(wait, limit)
		}
		before, at = e.after, at+wait
		times = append(times, at)
	}
	return times
}

// rowsOf are the rows of the terminal, and how many there are after each event.
func (c *cast) rowsOf() (all []string, ends []int, err error) {
	all = []string{""}
	for _, e := range c.events {
		for _, r := range e.text {
			last := &all[len(all)-1]
			switch {
			case r == '\n':
				all = append(all, "")
			case r == '\r': // of "\r\n": the demo prints whole lines
			case r == '\t':
				*last += strings.Repeat(" ", 8-utf8.RuneCountInString(*last)%8)
			case r < ' ' || r == utf8.RuneError:
				return nil, nil, fmt.Errorf("%q at %s: control characters are not drawn", r, e.after)
			case utf8.RuneCountInString(*last) == c.Width:
				all = append(all, string(r))
			default:
				*last += string(r)
			}
		}
		n := len(all)
		if all[n-1] == "" {
			n-- // where the cursor waits
		}
		ends = append(ends, n)
	}
	if len(ends) == 0 || ends[len(ends)-1] == 0 {
		return nil, nil, fmt.Errorf("nothing was printed")
	}
	return all[:ends[len(ends)-1]], ends, nil
}

// lines are the rows as they are drawn. What follows a row that is full to its end is taken for the rest of its line.
func (c *cast) lines(all []string) (sheet []line) {
	for i, text := range all {
		l := line{Y: lineHeight*float64(i) + 12, Text: strings.TrimRight(text, " ")}
		switch {
		case i > 0 && utf8.RuneCountInString(all[i-1]) == c.Width:
			l.Class = sheet[i-1].Class
		case strings.HasPrefix(text, "==="):
			l.Class = "heading"
		case strings.HasPrefix(text, "$ "):
			l.Class = "typed"
		case strings.HasPrefix(text, " "):
			l.Class = "printed"
		}
		l.Width = float64(utf8.RuneCountInString(l.Text)) * letterWidth
		sheet = append(sheet, l)
	}
	return sheet
}

// lastScreen is what is seen at the end.
func (c *cast) lastScreen() ([]string, error) {
	all, _, err := c.rowsOf()
	return all[max(0, len(all)-c.Height):], err
}
