// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom lists the modules of a Go program as a CycloneDX document. It reads what the linker wrote into the
// program, so it does not list modules that are only in a go.mod. Equal files give equal documents: they have no time
// and no serial number.
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

// Binary returns the document for a Go program. version is that of its main module: outside of git, the linker does not
// know it.
func Binary(file, version string) (*cdx.BOM, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	program, parts, err := describe(filepath.Base(file), version, content)
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s: %w", file, err)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: refs(parts)}}
	return bom, nil
}

// describe returns the program and the modules that are linked into it, including Go's standard library. Which module
// needs which is unknown.
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
	// Some parsers of URLs read the + of +incompatible as a space.
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}

// sum decodes a checksum of go.sum, which is a SHA-256 of the digests of a module's files.
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

// Write writes the document as indented JSON.
func Write(w io.Writer, bom *cdx.BOM) error {
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}
