// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command cast records what a command prints in a terminal, as it came, and draws the recording:
//
//	cast -title TITLE -o FILE.cast COMMAND ARGUMENT...   records it, and ends as the command does
//	cast -draw FILE.cast -o FILE.svg                     draws it as a picture that moves
//
// Recordings are of asciinema's format, version 2, so any player of it plays them. make cast records the demo.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/creack/pty"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cast:", err)
		os.Exit(1)
	}
}

func run() error {
	title := flag.String("title", "", "what the recording is of")
	draw := flag.String("draw", "", "a recording to draw, instead of recording")
	out := flag.String("o", "", "the file to write")
	flag.Parse()
	if *out == "" || (*draw == "") == (flag.NArg() == 0) {
		return errors.New("name a file with -o, and either a recording with -draw or a command")
	}
	if *draw == "" {
		return record(*out, *title, flag.Args())
	}
	text, err := os.ReadFile(*draw)
	if err != nil {
		return err
	}
	c, err := read(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", *draw, err)
	}
	picture, err := c.picture()
	if err != nil {
		return fmt.Errorf("%s: %w", *draw, err)
	}
	return os.WriteFile(*out, picture, 0o644)
}

// record runs a command in a terminal and shows it here, too. A command that fails leaves no recording.
func record(file, title string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return fmt.Errorf("starting %s: %w", command[0], err)
	}
	defer terminal.Close()
	start := time.Now()
	c := cast{header: header{
		Version: 2, Width: columns, Height: rows, Timestamp: start.Unix(), IdleTimeLimit: longestWait, Title: title,
	}}
	for buffer := make([]byte, 64<<10); ; {
		n, err := terminal.Read(buffer)
		c.add(time.Since(start), buffer[:n])
		_, _ = os.Stdout.Write(buffer[:n])
		if err != nil { // EIO: the command has ended
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w; nothing was written", command[0], err)
	}
	var text bytes.Buffer
	if err := c.write(&text); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}
