// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kustomize builds trees of config/ for tests, with the kustomize library that kubectl contains. It only reads
// files.
package kustomize

import (
	"path/filepath"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/memfit/memfit/test/tree"
)

var mu sync.Mutex // the library keeps schemas in global variables

// Build returns the output of `kustomize build` for a folder, which is absolute or relative to the repository's root.
func Build(folder string) ([]byte, error) {
	mu.Lock()
	defer mu.Unlock()
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(tree.Root(), folder)
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as the command does: Namespaces first
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}
