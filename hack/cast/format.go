// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

const (
	columns, rows = 120, 32
	// longestWait is how many seconds of silence a player shows at most; the recording has all of them.
	longestWait = 2
)

// header is the first line of a recording.
type header struct {
	Version       int     `json:"version"`
	Width         int     `json:"width"`
	Height        int     `json:"height"`
	Timestamp     int64   `json:"timestamp,omitempty"`
	IdleTimeLimit float64 `json:"idle_time_limit,omitempty"`
	Title         string  `json:"title,omitempty"`
}

// output is something that was printed, so long after the start.
type output struct {
	after time.Duration
	text  string
}

type cast struct {
	header
	events []output
	part   []byte // of a letter that came in two pieces
}

func (c *cast) add(after time.Duration, printed []byte) {
	text := append(c.part, printed...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if b := text[len(text)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole = len(text) - back
			}
			break
		}
	}
	c.part = append([]byte(nil), text[whole:]...)
	if whole > 0 {
		c.events = append(c.events, output{after, string(text[:whole])})
	}
}

func (c *cast) write(w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(c.header); err != nil {
		return err
	}
	for _, e := range c.events {
		at := float64(e.after.Round(time.Millisecond).Milliseconds()) / 1000
		if err := lines.Encode([]any{at, "o", e.text}); err != nil {
			return err
		}
	}
	return nil
}

// read takes a recording of output only, whose times never go back.
func read(r io.Reader) (*cast, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return nil, errors.New("it is empty")
	}
	var c cast
	if err := json.Unmarshal(lines.Bytes(), &c.header); err != nil {
		return nil, fmt.Errorf("its first line: %w", err)
	}
	if c.Version != 2 || c.Width <= 0 || c.Height <= 0 {
		return nil, fmt.Errorf(
			"version %d of %d columns and %d rows: want version 2, and a size", c.Version, c.Width, c.Height,
		)
	}
	for n := 2; lines.Scan(); n++ {
		var at float64
		var kind, text string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&at, &kind, &text}); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		e := output{time.Duration(at * float64(time.Second)), text}
		if kind != "o" || len(c.events) > 0 && e.after < c.events[len(c.events)-1].after {
			return nil, fmt.Errorf("line %d: %q at %s: want output, in the order of time", n, kind, e.after)
		}
		c.events = append(c.events, e)
	}
	return &c, lines.Err()
}
