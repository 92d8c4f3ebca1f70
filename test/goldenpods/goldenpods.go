// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package goldenpods finds the golden pairs of internal/inject, which several tests take different ways: NAME.yaml, a
// pod with what governs it, and NAME.yaml.injected, what becomes of it. Those of one runtime stand in a folder of its
// own.
package goldenpods

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/tree"
)

// fewest catches a test that looks in the wrong place and so finds nothing wrong.
const fewest = 100

// Dir is the folder that holds them.
func Dir() string { return filepath.Join(tree.Root(), "internal", "inject", "testdata") }

// Inputs are the files NAME.yaml, in order.
func Inputs() ([]string, error) { return named("*.yaml") }

// Outputs are the files NAME.yaml.injected, in order.
func Outputs() ([]string, error) { return named("*.yaml.injected") }

func named(pattern string) ([]string, error) {
	var found []string
	for _, at := range []string{pattern, filepath.Join("*", pattern)} {
		files, err := filepath.Glob(filepath.Join(Dir(), at))
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	if len(found) < fewest {
		return nil, fmt.Errorf("%d files %s in %s and its folders, want at least %d", len(found), pattern, Dir(), fewest)
	}
	slices.Sort(found)
	return found, nil
}

// Pair is a golden pair's pod with what governs it, as they are in a cluster: in namespace shop, the pod owned by a
// workload if there is a recommendation for it, because no record outlives a bare pod.
type Pair struct {
	// Pod is the pod as JSON.
	Pod []byte
	// Profile governs the pod; without a name when the file has only the pod.
	Profile *v1alpha1.MemoryProfile
	// Recommendation is nil when there is none.
	Recommendation *v1alpha1.MemoryRecommendation
}

// Read reads one file of a golden pair.
func Read(file string) (Pair, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Pair{}, err
	}
	p, pod := Pair{Profile: &v1alpha1.MemoryProfile{}}, map[string]any{}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		if err := p.add(document, &pod); err != nil {
			return Pair{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	p.Profile.Namespace = "shop"
	metadata, _ := pod["metadata"].(map[string]any)
	if p.Recommendation != nil {
		owner := metav1.OwnerReference{
			APIVersion: "example.com/v1", Kind: "Web", Name: "web", UID: "w", Controller: new(true),
		}
		p.Recommendation.Namespace, p.Recommendation.Name = "shop", "web.example.com-web"
		p.Recommendation.OwnerReferences = []metav1.OwnerReference{owner}
		metadata["ownerReferences"] = p.Recommendation.OwnerReferences
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[v1alpha1.ProfileAnnotation] = p.Profile.Name
	metadata["annotations"] = annotations
	p.Pod, err = json.Marshal(pod)
	return p, err
}

// add takes over one document.
func (p *Pair) add(document []byte, pod any) error {
	var kind struct{ Kind string }
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "MemoryProfile":
		return yaml.Unmarshal(document, p.Profile)
	case "MemoryRecommendation":
		p.Recommendation = &v1alpha1.MemoryRecommendation{}
		return yaml.Unmarshal(document, p.Recommendation)
	case "Pod":
		return yaml.Unmarshal(document, pod)
	default:
		return nil
	}
}
