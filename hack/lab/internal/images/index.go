// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation is the annotation for the tag of an entry in an OCI layout.
const nameAnnotation = "org.opencontainers.image.ref.name"

// WriteIndex writes an OCI layout into dir: an image of the program for each processor, and an index of these images.
// binaries maps a GOARCH to its program. WriteIndex returns the digest of the index.
func WriteIndex(dir, tag string, p Program, binaries map[string]string, labels map[string]string) (string, error) {
	if len(binaries) == 0 {
		return "", errors.New("name at least one program: ARCH=FILE")
	}
	work, err := os.MkdirTemp("", "memfit-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(binaries)) {
		p.Binary = binaries[arch]
		file := filepath.Join(work, arch+".tar")
		if err := p.layer(file); err != nil {
			return "", err
		}
		image, err := assemble(Config{Entrypoint: []string{p.Entrypoint}, Arch: arch, Labels: labels}, []string{file})
		if err != nil {
			return "", err
		}
		image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	if err := writeLayout(dir, func(to layout.Path) error {
		return to.AppendIndex(index, layout.WithAnnotations(map[string]string{nameAnnotation: tag}))
	}); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// writeLayout writes a layout with fill and moves it to dir when it is complete.
func writeLayout(dir string, fill func(layout.Path) error) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	to, err := layout.Write(tmp, empty.Index)
	if err != nil {
		return err
	}
	if err := fill(to); err != nil {
		return fmt.Errorf("writing the layout %s: %w", dir, err)
	}
	if err := errors.Join(os.Chmod(tmp, 0o755), os.RemoveAll(dir)); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}
