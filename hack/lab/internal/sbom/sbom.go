// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom reports what a Go program is made of, as a CycloneDX document. It reads what the
// linker wrote into the program itself, so it cannot name modules that are only in a go.mod. Equal files give equal
// documents: no time of writing, no random serial number.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Binary describes a Go program. The version is that of its main module, which the linker does not know outside of git.
func Binary(file, version string) (*cdx.BOM, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	program, parts, err := describe(filepath.Base(file), version, content)
	if err != nil {
		return nil, fmt.Errorf("reading what %s is built from: %w", file, err)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: refs(parts)}}
	return bom, nil
}

// describe is the program and the modules that are linked into it, Go's own library among them. Which of them needs
// which other is not told.
func describe(name, version string, content []byte) (program cdx.Component, parts []cdx.Component, err error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return cdx.Component{}, nil, err
	}
	command := strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")
	program = module(info.Main.Path, version)
	program.Type, program.Name, program.Hashes = cdx.ComponentTypeApplication, name, hashes(content)
	if command != "" {
		program.PackageURL += "#" + command
	}
	program.BOMRef = program.PackageURL
	parts = []cdx.Component{module("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		part := module(m.Path, m.Version)
		if part.Hashes, err = sum(m.Sum); err != nil {
			return cdx.Component{}, nil, fmt.Errorf("the checksum of %s: %w", m.Path, err)
		}
		parts = append(parts, part)
	}
	return program, parts, nil
}

func module(path, version string) cdx.Component {
	// The + of +incompatible stands for a space in some readers of URLs.
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}

// sum is the checksum of go.sum: a SHA-256 over the digests of a module's files.
func sum(h1 string) (*[]cdx.Hash, error) {
	if h1 == "" {
		return nil, nil // a module in a folder
	}
	digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h1, "h1:"))
	if err != nil || len(digest) != sha256.Size {
		return nil, fmt.Errorf("%q is not a checksum of go.sum", h1)
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}, nil
}

func hashes(content []byte) *[]cdx.Hash {
	digest := sha256.Sum256(content)
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}
}

func refs(parts []cdx.Component) *[]string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.BOMRef
	}
	return &names
}

// Write writes a document for people and programs.
func Write(w io.Writer, bom *cdx.BOM) error {
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}
