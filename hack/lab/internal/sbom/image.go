// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image describes an image in a tar file: each file in it, and for the Go programs among them the modules.
func Image(file, name, version string) (*cdx.BOM, error) {
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the image %s: %w", file, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	purl := "pkg:oci/" + name + "@sha256%3A" + digest.Hex
	subject := cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeContainer, Name: name, Version: version, PackageURL: purl,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest.Hex}},
	}
	return contents(image, subject, version)
}

func contents(image v1.Image, subject cdx.Component, version string) (*cdx.BOM, error) {
	files := mutate.Extract(image)
	defer files.Close()
	var all, top []cdx.Component
	var dependencies []cdx.Dependency
	for in := tar.NewReader(files); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the files of the image: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", h.Name, err)
		}
		program, parts, err := describe(path.Base(h.Name), version, content)
		if err != nil { // no Go program
			program, parts = plainFile(h.Name, content), nil
		} else {
			dependencies = append(dependencies, cdx.Dependency{Ref: program.BOMRef, Dependencies: refs(parts)})
		}
		top = append(top, program)
		all = append(append(all, program), parts...)
	}
	dependencies = append([]cdx.Dependency{{Ref: subject.BOMRef, Dependencies: refs(top)}}, dependencies...)
	return document(subject, all, dependencies...), nil
}
