// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kustomize builds trees of config/ for tests, with the library of the kustomize that is in kubectl. It touches
// the files of the tree.
package kustomize

import (
	"path/filepath"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/memfit/memfit/test/tree"
)

var one sync.Mutex // schemas are read into global variables

// Build returns what `kustomize build` prints for a folder: an absolute path, or one from the root of the repository.
func Build(folder string) ([]byte, error) {
	one.Lock()
	defer one.Unlock()
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(tree.Root(), folder)
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as the command does: a Namespace comes first
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}
