// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const images = "../../docs/images/"

func recorded(t *testing.T) *cast {
	t.Helper()
	text, err := os.ReadFile(images + "demo.cast")
	if err != nil {
		t.Fatal(err)
	}
	c, err := read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDemo: the recording of docs/ is one that players play, of a demo that came to its end.
func TestDemo(t *testing.T) {
	c := recorded(t)
	if c.IdleTimeLimit != longestWait || c.Width != columns || c.Height != rows || c.Timestamp == 0 {
		t.Errorf("its header is %+v", c.header)
	}
	if took := c.events[len(c.events)-1].after; took < time.Minute || took > 20*time.Minute {
		t.Errorf("the demo took %s, and is made of real waiting", took)
	}
	last, err := c.lastScreen()
	if err != nil {
		t.Fatal(err)
	}
	screen := strings.Join(last, "\n")
	table := regexp.MustCompile(`(?m)^ +LIMIT +HEAP CAP +PEAK RSS +OOM KILLS +STALLED +BURSTS IN A ROW *\n` +
		`without memfit +256Mi .*\nwith its settings +256Mi .* 0 .*\nwith the recommended size +\d+Mi .* 0 .*\n`)
	if !table.MatchString(screen) || !strings.Contains(screen, "Told in ") {
		t.Errorf("the last screen is\n%s", screen)
	}
}

// TestPicture: the picture of docs/ is drawn from that recording, has nothing from elsewhere, and stays small.
func TestPicture(t *testing.T) {
	want, err := recorded(t).picture()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(images + "demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/images/demo.svg is another one: make cast-picture")
	}
	if len(got) > 300<<10 {
		t.Errorf("it has %d bytes", len(got))
	}
	text := strings.ReplaceAll(string(got), `xmlns="http://www.w3.org/2000/svg"`, "")
	if found := regexp.MustCompile(`(?i)<script|href|src=|url\(|@import`).FindString(text); found != "" {
		t.Errorf("it refers to something: %s", found)
	}
	for d := xml.NewDecoder(bytes.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRows(t *testing.T) {
	c := cast{header: header{Version: 2, Width: 10, Height: 3, IdleTimeLimit: 2}}
	c.add(time.Second, []byte("one\r\ntwo \xe2\x86"))
	c.add(9*time.Second, []byte("\x92 and more\r\n\ta\r\n"))
	all, ends, err := c.rowsOf()
	if err != nil || strings.Join(all, "|") != "one|two → and |more|        a" || ends[0] != 2 || ends[1] != 4 {
		t.Errorf("%q, %v, %v", all, ends, err)
	}
	if drawn := c.lines([]string{"$ 45678901", "2", " 3", "4"}); drawn[0].Class != "typed" || drawn[1].Class != "typed" ||
		drawn[2].Class != "printed" || drawn[3].Class != "" {
		t.Errorf("a line that takes two rows, one that was printed, and the story: %+v", drawn)
	}
	if last, err := c.lastScreen(); err != nil || len(last) != 3 || last[0] != "two → and " {
		t.Errorf("the last screen is %q, %v", last, err)
	}
	if at := c.shown(); at[0] != time.Second || at[1] != 3*time.Second {
		t.Errorf("shown at %v, want the silence of 8 s as one of 2", at)
	}
	var text bytes.Buffer
	if err := c.write(&text); err != nil {
		t.Fatal(err)
	}
	back, err := read(&text)
	if err != nil || len(back.events) != 2 || back.events[1] != c.events[1] || back.header != c.header {
		t.Errorf("read back: %+v, %v", back, err)
	}
	c.add(10*time.Second, []byte("\x1b[31m"))
	if _, err := c.picture(); err == nil {
		t.Error("colors are drawn as if they were letters")
	}
}

func TestRead(t *testing.T) {
	const head = `{"version": 2, "width": 10, "height": 3}` + "\n"
	for text, want := range map[string]string{
		"": "empty", "x": "first line", `{"version": 3, "width": 10, "height": 3}`: "want version 2",
		head + `[1, "i", "x"]`: "want output", head + "[2, \"o\", \"x\"]\n[1, \"o\", \"x\"]": "order of time",
		head + `[1]`: "line 2",
	} {
		if _, err := read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRecord: a command is recorded in a terminal, with its waits; one that fails leaves nothing.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.cast")
	if err := record(file, "a test", []string{"sh", "-c", "test -t 1 && echo terminal; sleep 0.3; echo end"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := read(bytes.NewReader(text))
	if err != nil || len(c.events) < 2 || c.events[0].text != "terminal\r\n" || c.Title != "a test" {
		t.Fatalf("%v: %s", err, text)
	}
	if wait := c.events[1].after - c.events[0].after; wait < 250*time.Millisecond || wait > 10*time.Second {
		t.Errorf("it waited %s between the lines, want 0.3 s", wait)
	}
	file += "2"
	if err := record(file, "", []string{"sh", "-c", "echo no; exit 3"}); err == nil {
		t.Error("a command that failed was recorded")
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("a command that failed left a recording")
	}
}
