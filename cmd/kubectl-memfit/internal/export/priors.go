// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Priors returns the object that transfers what memfit learned about young containers to another cluster.
func Priors(namespace string, learned []byte) ([]byte, error) {
	var lines bytes.Buffer
	if err := json.Indent(&lines, learned, "", "  "); err != nil {
		return nil, fmt.Errorf("reading MemoryCheckpoint %s/%s: %w", namespace, v1alpha1.PriorsName, err)
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "MemoryCheckpoint",
		"metadata": map[string]any{
			"namespace": namespace, "name": v1alpha1.PriorsName,
			"annotations": map[string]string{v1alpha1.PriorsAnnotation: lines.String() + "\n"},
		},
	})
}
