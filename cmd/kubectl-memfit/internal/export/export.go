// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package export writes recommendations as patches for Git, for `kubectl memfit export`. It is pure: the same input
// gives the same bytes, so that a nightly commit of the output is empty unless a recommendation changed.
//
// It exports workloads with a pod template. For other workloads and unsized containers, it writes the reason.
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
	// Kustomize is a strategic merge patch for each workload, for the patches field of a kustomization.
	Kustomize = "kustomize"
	// JSON6902 is a list of JSON patch operations for each workload. They find containers by index.
	JSON6902 = "json6902"
	// HelmValues is the resources of each container, under the keys that most charts have.
	HelmValues = "helm-values"
	// SSA is a manifest for server-side apply for each workload, with the memory fields only.
	SSA = "ssa"
)

// Formats lists all formats in the order of the help.
var Formats = []string{Kustomize, JSON6902, HelmValues, SSA}

// usage describes each format and how to apply it, for the comment at the top of the output.
var usage = map[string]string{
	Kustomize: `
Strategic merge patches, one YAML document for each workload. kustomization.yaml: patches: [{path: FILE}]
Namespaces must match the patched resources: for a base without namespaces, export with --no-namespace.`,
	JSON6902: `
JSON patches (RFC 6902), one YAML document for each workload. A patch finds containers by their index in the live
template. It first tests the name of the container, and fails if another container has this index now.
kustomization.yaml: patches: [{target: {kind: KIND, name: NAME}, path: FILE}] with one document in each file.
Or: kubectl -n NAMESPACE patch KIND NAME --type=json --patch-file=FILE`,
	HelmValues: `
Values for Helm, one YAML document for each workload. The resources of the first container are under resources, as in
charts by helm create; the resources of other containers are under the container's name. Charts differ: compare with
the chart's values.yaml, and move values of a subchart under its name. cpu is not included; Helm keeps other values.`,
	SSA: `
Manifests for server-side apply, with the memory fields only:
  kubectl apply --server-side --field-manager=memfit-export -f FILE
The API server reports a conflict if another manager owns a field. If that manager applies your manifests from Git,
change the manifests, or it will revert the fields later. --force-conflicts makes memfit-export the owner.`,
}

// Options control the output.
type Options struct {
	Format string // one of Formats
	// NoNamespace omits metadata.namespace (Kustomize only), for bases without a namespace.
	NoNamespace bool
}

// Result is the output of [Write].
type Result struct {
	// Text has the patches with their comments.
	Text []byte
	// Markdown lists what the patches change and why, for the text of a pull request; at most 65536 characters.
	Markdown []byte
	// Exported is the number of workloads with a patch.
	Exported int
	// LeftOut has a reason for each workload without a patch.
	LeftOut []string
}

// Write writes patches for sources, which it sorts by namespace, kind and name.
func Write(sources []Source, o Options) (Result, error) {
	slices.SortFunc(sources, func(a, b Source) int { return byName(a.Recommendation, b.Recommendation) })
	var r Result
	var documents, refusals bytes.Buffer
	var text markdown
	for _, s := range sources {
		w := prepare(s, o.Format)
		if w.refused != "" {
			r.LeftOut = append(r.LeftOut, fmt.Sprintf("%s is left out: %s", &w, w.refused))
			refusals.WriteString(w.refusal())
			text.leaveOut(&w)
			continue
		}
		body, err := yaml.Marshal(w.document(o))
		if err != nil {
			return Result{}, fmt.Errorf("writing a patch for %s: %w", &w, err)
		}
		if r.Exported++; r.Exported > 1 { // not above the first: kubectl patch and helm read one document
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
