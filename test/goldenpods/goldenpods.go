// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package goldenpods finds the golden pairs of internal/inject for several tests: NAME.yaml, a pod with its profile and
// recommendation, and NAME.yaml.injected, the resulting pod. Pairs of one runtime are in a folder of their own.
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

// minFiles is below the number of pairs; fewer mean a wrong path.
const minFiles = 100

// Dir returns the folder of the golden pairs.
func Dir() string { return filepath.Join(tree.Root(), "internal", "inject", "testdata") }

// Inputs returns the files NAME.yaml, in order.
func Inputs() ([]string, error) { return named("*.yaml") }

// Outputs returns the files NAME.yaml.injected, in order.
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
	if len(found) < minFiles {
		return nil, fmt.Errorf("%d files %s in %s and its folders, want at least %d", len(found), pattern, Dir(), minFiles)
	}
	slices.Sort(found)
	return found, nil
}

// Pair is a golden pair's pod with its profile and recommendation, in namespace shop as in a cluster. A pod with a
// recommendation has an owner, because the recommendation of a bare pod is deleted with it.
type Pair struct {
	// Pod is the pod as JSON.
	Pod []byte
	// Profile governs the pod; its name is empty when the file has only the pod.
	Profile *v1alpha1.MemoryProfile
	// Recommendation is nil when the file has none.
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

// add decodes one document.
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
