// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package export writes recommendations as patches for Git. It is pure, and equal input gives equal bytes, so that a
// nightly commit of its output is empty as long as no recommendation changed.
//
// It exports workloads with a pod template, which are what Git holds. A workload or container that cannot be exported
// becomes a comment with the reason.
package export

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// The formats of patches.
const (
	// Kustomize: a strategic merge patch for each workload, for patches: of a kustomization.
	Kustomize = "kustomize"
	// JSON6902: a list of JSON patch operations for each workload, by the index of its containers.
	JSON6902 = "json6902"
	// HelmValues: resources of each container, under the keys that most charts have.
	HelmValues = "helm-values"
	// SSA: manifests for server-side apply that hold the memory fields and nothing else.
	SSA = "ssa"
)

// Formats lists all formats in the order of the help.
var Formats = []string{Kustomize, JSON6902, HelmValues, SSA}

// usage has what to do with the output, for the comment above it.
var usage = map[string]string{
	Kustomize: `
Strategic merge patches, one YAML document for each workload. kustomization.yaml: patches: [{path: FILE}]
Namespaces must match those of the patched resources: for a base without one, export with --no-namespace.`,
	JSON6902: `
JSON patches (RFC 6902), one YAML document for each workload. Containers are found by their index in the live
template, so each patch is valid for that template only: it first tests the container's name, and fails if another
container is there now.
kustomization.yaml: patches: [{target: {kind: KIND, name: NAME}, path: FILE}] with one document in each file.
Or: kubectl -n NAMESPACE patch KIND NAME --type=json --patch-file=FILE`,
	HelmValues: `
Values for Helm, one YAML document for each workload. The first container's resources are where helm create puts them
(resources), those of others under the container's name. Charts differ: compare with the chart's values.yaml, and
indent under the name of a subchart. cpu is not included; Helm keeps your other values.`,
	SSA: `
Manifests for server-side apply; they hold the memory fields and nothing else:
  kubectl apply --server-side --field-manager=memfit-export -f FILE
The API server reports a conflict for fields of another manager. If that one applies your manifests from Git, change
them, or they revert the fields later; --force-conflicts transfers the fields to memfit-export.`,
}

// Options select the format.
type Options struct {
	Format string
	// NoNamespace leaves metadata.namespace out, for bases that get theirs from a kustomization.
	NoNamespace bool
}

// Result is the output of [Write].
type Result struct {
	// Text has the patches with their comments.
	Text []byte
	// Markdown lists what the patches change and why, for the text of a pull request; at most 65536 characters.
	Markdown []byte
	// Exported is the number of workloads that have a patch; LeftOut has the reason for each of the others.
	Exported int
	LeftOut  []string
}

// Write writes patches for sources, in the order of namespace, kind and name.
func Write(sources []Source, o Options) (Result, error) {
	slices.SortFunc(sources, func(a, b Source) int { return byName(a.Recommendation, b.Recommendation) })
	var r Result
	var documents, refusals bytes.Buffer
	var text markdown
	for _, s := range sources {
		w := take(s, o.Format)
		if w.refused != "" {
			r.LeftOut = append(r.LeftOut, fmt.Sprintf("%s is left out: %s", &w, w.refused))
			refusals.WriteString(w.refusal())
			text.leave(&w)
			continue
		}
		body, err := yaml.Marshal(w.document(o))
		if err != nil {
			return Result{}, fmt.Errorf("writing a patch for %s: %w", &w, err)
		}
		if r.Exported++; r.Exported > 1 { // a single workload is a single document: kubectl patch and helm read only one
			documents.WriteString("---\n")
		}
		documents.WriteString(w.header())
		documents.Write(body)
		text.add(&w)
	}
	var top comment
	for line := range strings.Lines("kubectl memfit export -o " + o.Format + usage[o.Format]) {
		top.line("%s", line)
	}
	top.WriteString(refusals.String() + "#\n")
	r.Text, r.Markdown = append([]byte(top.String()), documents.Bytes()...), text.text()
	return r, nil
}

func byName(a, b *v1alpha1.MemoryRecommendation) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Status.Workload.Kind, b.Status.Workload.Kind),
		cmp.Compare(a.Status.Workload.Name, b.Status.Workload.Name), cmp.Compare(a.Name, b.Name),
	)
}

func (w *workload) document(o Options) any {
	switch o.Format {
	case JSON6902:
		return w.operations()
	case HelmValues:
		return w.values()
	default:
		return w.manifest(o)
	}
}
