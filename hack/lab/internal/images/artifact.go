// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// withConfig is an image whose configuration is none of an image: that is how registries keep other things.
type withConfig struct {
	v1.Image
	config []byte
}

func (w withConfig) RawConfigFile() ([]byte, error) { return w.config, nil }

func (w withConfig) ConfigName() (v1.Hash, error) {
	hash, _, err := v1.SHA256(bytes.NewReader(w.config))
	return hash, err
}

func (w withConfig) Manifest() (*v1.Manifest, error) {
	manifest, err := w.Image.Manifest()
	if err != nil {
		return nil, err
	}
	manifest = manifest.DeepCopy()
	if manifest.Config.Digest, err = w.ConfigName(); err != nil {
		return nil, err
	}
	manifest.Config.Size = int64(len(w.config))
	return manifest, nil
}

func (w withConfig) RawManifest() ([]byte, error) {
	manifest, err := w.Manifest()
	if err != nil {
		return nil, fmt.Errorf("describing the artifact: %w", err)
	}
	return json.Marshal(manifest)
}

func (w withConfig) Digest() (v1.Hash, error) { return partial.Digest(w) }

func (w withConfig) Size() (int64, error) { return partial.Size(w) }
