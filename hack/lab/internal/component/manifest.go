// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// manifest is what the cache knows about the binaries of one entry: name to SHA-256.
type manifest struct {
	GoVersion string            `json:"goVersion"`
	SHA256    map[string]string `json:"sha256"`
}

const manifestName = "manifest.json"

func readManifest(dir string) (manifest, error) {
	m := manifest{SHA256: map[string]string{}}
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("reading the cache manifest: %w", err)
	}
	if json.Unmarshal(data, &m) != nil || m.SHA256 == nil {
		// A crash while writing leaves half a file. Building again is always right.
		m = manifest{SHA256: map[string]string{}}
	}
	return m, nil
}

// write replaces the manifest in one step.
func (m manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, manifestName+".new")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the cache manifest: %w", err)
	}
	return os.Rename(tmp, filepath.Join(dir, manifestName))
}

// holds reports whether dir has the binary with the bytes that were once built. Hashing costs 0.1 s per 100 MB.
func (m manifest) holds(dir, binary string) bool {
	want := m.SHA256[binary]
	if want == "" {
		return false
	}
	got, err := fileSHA256(filepath.Join(dir, binary))
	return err == nil && got == want
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
