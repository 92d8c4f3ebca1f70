// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/memfit/memfit/internal/procmem/elffile"
)

// buildRead bounds the bytes read of the section. The version is at its start.
const buildRead = 1 << 10

// readBuild returns the Go version of a program, or "". It does not use debug/elf, which is not hardened.
func readBuild(file io.ReaderAt, size int64, elf *elffile.File) (version string) {
	s, err := elf.Section(".go.buildinfo")
	if err != nil || s.Offset > uint64(max(size, 0)) {
		return ""
	}
	data := make([]byte, min(s.Size, buildRead, uint64(max(size, 0))-s.Offset))
	//nolint:gosec // the offset is at most the file's size
	if n, err := file.ReadAt(data, int64(s.Offset)); err != nil && !errors.Is(err, io.EOF) || n < len(data) {
		return ""
	}
	return parseBuild(data)
}

// The section begins with 32 bytes: 14 of magic, the size of a pointer, and flags. Bit 1 of the flags means that texts
// follow, each after its length (Go 1.18 and later).
const (
	buildMagic  = "\xff Go buildinf:"
	buildHeader = 32
	buildInline = 2
)

// parseBuild returns the version from the section ".go.buildinfo" of Go 1.18 and later; empty: unknown.
func parseBuild(section []byte) (version string) {
	if len(section) < buildHeader || !bytes.HasPrefix(section, []byte(buildMagic)) || section[15]&buildInline == 0 {
		return ""
	}
	text := section[buildHeader:]
	length, n := binary.Uvarint(text)
	if n <= 0 || length > uint64(len(text[n:])) {
		return ""
	}
	version = string(text[n : n+int(length)]) //nolint:gosec // at most the length of text
	version, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(version, "devel "), "go"), " ")
	return plain(version)
}
