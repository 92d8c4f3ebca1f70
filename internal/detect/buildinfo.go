// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/procmem/elffile"
	"github.com/memfit/memfit/internal/runtimes"
)

// maxBuildInfo is how large the section may be. It lists all modules: that of the Kubernetes API server has 30 KiB.
const maxBuildInfo = 1 << 20

// readBuild reads what the Go linker wrote. debug/buildinfo is not used: it reads the headers of the file with
// debug/elf, which is not made for files of people who mean harm.
func readBuild(file io.ReaderAt, size int64, elf *elffile.File) *Build {
	s, err := elf.Section(".go.buildinfo")
	if err != nil || s.Size > maxBuildInfo || s.Offset > uint64(max(size, 0)) {
		return nil
	}
	data := make([]byte, min(s.Size, uint64(max(size, 0))-s.Offset))
	//nolint:gosec // the offset is at most the file's size
	if n, err := file.ReadAt(data, int64(s.Offset)); err != nil && !errors.Is(err, io.EOF) || n < len(data) {
		return nil
	}
	return parseBuild(data)
}

// The section begins with 32 bytes: 14 of magic, the size of a pointer, and flags, of which bit 1 means that the texts
// follow, each after its length. That is so since Go 1.18.
const (
	buildMagic   = "\xff Go buildinf:"
	buildHeader  = 32
	buildInline  = 2
	moduleMarker = 16 // bytes before and behind the list of modules
)

// parseBuild reads the section ".go.buildinfo" of Go 1.18 and later; nil if it is not one.
func parseBuild(section []byte) *Build {
	if len(section) < buildHeader || !bytes.HasPrefix(section, []byte(buildMagic)) || section[15]&buildInline == 0 {
		return nil
	}
	version, rest, ok := lengthAndText(section[buildHeader:])
	modules, _, okModules := lengthAndText(rest)
	if !ok || !okModules {
		return nil
	}
	version, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(version, "devel "), "go"), " ")
	b := &Build{Version: plain(version)}
	if len(modules) >= 2*moduleMarker {
		b.modules(modules[moduleMarker : len(modules)-moduleMarker])
	}
	return b
}

func lengthAndText(b []byte) (text string, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b[n:])) {
		return "", nil, false
	}
	return string(b[n : n+int(length)]), b[n+int(length):], true //nolint:gosec // at most the length of b
}

func (b *Build) modules(text string) {
	info, err := debug.ParseBuildInfo(text)
	if err != nil {
		return
	}
	b.Cgo = slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
	for _, row := range runtimes.All() {
		for _, library := range row.Libraries {
			if slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Path == library }) {
				b.Libraries = append(b.Libraries, library)
			}
		}
	}
}
