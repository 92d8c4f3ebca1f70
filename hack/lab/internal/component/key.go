// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Toolchain identifies the Go compiler. Other versions build other bytes.
type Toolchain struct {
	Version, OS, Arch string
}

// FindToolchain returns the toolchain of the go command on the PATH.
func FindToolchain(ctx context.Context) (Toolchain, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return Toolchain{}, fmt.Errorf("reading the version of the go command (install Go 1.26 or later): %w", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) != 3 {
		return Toolchain{}, fmt.Errorf("unexpected output of `go env`: %q", out)
	}
	return Toolchain{Version: fields[0], OS: fields[1], Arch: fields[2]}, nil
}

// sources returns the files in dir that determine what is built: modfile, its .sum file and the Go sources.
func sources(dir, modfile string) (map[string][]byte, error) {
	files := map[string][]byte{}
	modfile = cmp.Or(modfile, "go.mod")
	for _, pattern := range []string{modfile, strings.TrimSuffix(modfile, ".mod") + ".sum", "*.go", "*/*.go"} {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range matches {
			if files[strings.TrimPrefix(path, dir+"/")], err = os.ReadFile(path); err != nil {
				return nil, fmt.Errorf("reading the pinned module: %w", err)
			}
		}
	}
	if files[modfile] == nil {
		return nil, fmt.Errorf("%s has no %s: run the lab from a complete checkout", dir, modfile)
	}
	return files, nil
}

// Key returns the key of a component in the cache. Equal keys mean equal binaries. The key does not depend on which
// binaries are selected: tests build three of them, and a lab builds all into the same entry.
func Key(c Component, tc Toolchain, files map[string][]byte) string {
	h := sha256.New()
	field := func(name string, value []byte) {
		// With the length, different lists of fields cannot give the same bytes.
		fmt.Fprintf(h, "%s %d\n", name, len(value))
		h.Write(value)
	}
	field("toolchain", fmt.Appendf(nil, "%s %s %s", tc.Version, tc.OS, tc.Arch))
	field("ldflags", []byte(c.LDFlags))
	field("tags", []byte(c.Tags))
	field("cgo", fmt.Append(nil, c.CGO))
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field("file "+name, bytes.ReplaceAll(files[name], []byte("\r\n"), []byte("\n")))
	}
	// 16 hex digits, 64 bits, are enough for some dozens of entries and keep paths short.
	return hex.EncodeToString(h.Sum(nil))[:16]
}
