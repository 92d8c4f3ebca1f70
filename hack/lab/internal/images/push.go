// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push sends the image, index or chart of an OCI layout to a registry and returns its digest. ref needs a tag. The
// credentials are those of `docker login` or `helm registry login`.
func Push(ctx context.Context, dir, ref string) (string, error) {
	tag, err := name.NewTag(ref, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("%q is not a name with a tag, like registry.example/memfit/manager:v0.1.0: %w", ref, err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return "", fmt.Errorf("reading the layout %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	if len(manifest.Manifests) != 1 {
		return "", fmt.Errorf("%s has %d entries, want one image, index or chart", dir, len(manifest.Manifests))
	}
	entry := manifest.Manifests[0]
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if entry.MediaType.IsIndex() {
		all, err := index.ImageIndex(entry.Digest)
		if err != nil {
			return "", err
		}
		return entry.Digest.String(), remote.WriteIndex(tag, all, options...)
	}
	image, err := index.Image(entry.Digest)
	if err != nil {
		return "", err
	}
	return entry.Digest.String(), remote.Write(tag, image, options...)
}
