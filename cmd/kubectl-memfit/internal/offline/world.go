// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workloadkind"
)

// world holds the objects in the manifests that the webhook would read from a cluster.
type world struct {
	namespace string
	profiles  []profile.Profile
	// sole is the only profile of Options.Profiles that can govern workloads; nil: none or several.
	sole  *profile.Profile
	index *profile.Index

	namespaces      map[string]metav1.ObjectMeta          // with labels and annotations
	keys            map[string]map[string]map[string]bool // by namespace and ConfigMap
	recommendations []v1alpha1.MemoryRecommendation
}

func newWorld(o Options) (*world, error) {
	w := &world{
		namespace: cmp.Or(o.Namespace, "default"), namespaces: make(map[string]metav1.ObjectMeta),
		keys: make(map[string]map[string]map[string]bool),
	}
	for i, d := range split(o.Profiles) {
		root, err := d.tree()
		if err != nil {
			return nil, fmt.Errorf("profile document %d: %w", i+1, d.placed(err, 0))
		}
		for _, n := range objects(root) {
			if err := w.addObject(n, true); err != nil {
				return nil, fmt.Errorf("profile document %d: %w", i+1, err)
			}
		}
	}
	governing := slices.DeleteFunc(slices.Clone(w.profiles), func(p profile.Profile) bool { return p.HoldsDefaults() })
	if len(governing) == 1 {
		w.sole = &governing[0]
	}
	if len(o.Profiles) > 0 && len(w.profiles) == 0 {
		return nil, fmt.Errorf("the profile file has no %s or %s", profile.KindNamespaced, profile.KindCluster)
	}
	return w, nil
}

// addObject adds an object that is not a workload, or only a profile if onlyProfiles is set. Of kinds other than
// memfit's, it reads only the needed fields, so that errors in other fields do not matter.
func (w *world) addObject(n *yaml.Node, onlyProfiles bool) error {
	name, namespace := text(n, "metadata", "name"), cmp.Or(text(n, "metadata", "namespace"), w.namespace)
	var err error
	switch kind := workloadkind.Group(text(n, "apiVersion")) + "/" + text(n, "kind"); {
	case kind == v1alpha1.Group+"/MemoryProfile":
		var p v1alpha1.MemoryProfile
		if err = intoProfile(n, &p, &p.ObjectMeta, memoryProfiles); err == nil {
			p.Namespace = namespace
			err = w.addProfile(profile.Of(&p))
		}
	case kind == v1alpha1.Group+"/ClusterMemoryProfile":
		var p v1alpha1.ClusterMemoryProfile
		if err = intoProfile(n, &p, &p.ObjectMeta, clusterMemoryProfiles); err == nil {
			p.Namespace = ""
			err = w.addProfile(profile.OfCluster(&p))
		}
	case onlyProfiles:
	case kind == v1alpha1.Group+"/MemoryRecommendation":
		var m v1alpha1.MemoryRecommendation
		if err = into(n, &m); err == nil {
			m.Namespace = namespace
			w.recommendations = append(w.recommendations, m)
		}
	case kind == "/Namespace":
		w.namespaces[name] = metav1.ObjectMeta{
			Labels: textsOf(get(n, "metadata", "labels")), Annotations: textsOf(get(n, "metadata", "annotations")),
		}
	case kind == "/ConfigMap":
		if w.keys[namespace] == nil {
			w.keys[namespace] = make(map[string]map[string]bool)
		}
		w.keys[namespace][name] = make(map[string]bool)
		for key := range pairs(get(n, "data")) {
			w.keys[namespace][name][key.Value] = true
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", text(n, "kind"), name, err)
	}
	return nil
}

func textsOf(n *yaml.Node) map[string]string {
	out := map[string]string{}
	for key, value := range pairs(n) {
		out[key.Value] = value.Value
	}
	return out
}

// labelsOf returns the labels of a namespace, with the name label that the API server adds.
func (w *world) labelsOf(namespace string) map[string]string {
	all := map[string]string{corev1.LabelMetadataName: namespace}
	maps.Copy(all, w.namespaces[namespace].Labels)
	return all
}

// addProfile adds a profile, unless the profile is known already: the profile file may also be part of the manifests.
// It returns an error if the webhook would refuse the profile.
func (w *world) addProfile(p profile.Profile) error {
	if errs := p.Validate(); len(errs) > 0 {
		return errs.ToAggregate()
	}
	p.Generation = max(p.Generation, 1)
	if !slices.ContainsFunc(
		w.profiles, func(other profile.Profile) bool { return other.Ref == p.Ref && other.Namespace == p.Namespace },
	) {
		w.profiles = append(w.profiles, p)
	}
	return nil
}

// buildIndex indexes the profiles. Call it after all objects are added, because profiles in the manifests may hold the
// defaults of profiles in the profile file.
func (w *world) buildIndex() {
	w.index = profile.NewIndex(w.profiles)
	if w.sole != nil { // w.sole was a copy without defaults
		w.sole = w.index.Get(w.sole.Key())
	}
}

// problems returns the conflicts between profiles.
func (w *world) problems() []string {
	var out []string
	for i := range w.profiles {
		p := &w.profiles[i]
		for _, text := range p.Clashes() {
			out = append(out, fmt.Sprintf("%s: %s", p, text))
		}
		if effective := w.index.Defaults(p.Namespace); p.HoldsDefaults() && effective.Ref != p.Ref {
			out = append(out, fmt.Sprintf("%s: has no effect, because %s also has role: Defaults and takes precedence: "+
				"move the values into one of them", p, effective))
		}
	}
	return out
}

// match finds the profile of a workload as the webhook does. If there is none, it returns w.sole (from any namespace),
// unless the workload opts out or names another profile.
func (w *world) match(target *workload) (*profile.Profile, profile.Match) {
	d := w.index.Match(profile.Subject{
		Namespace: target.namespace, WorkloadKind: target.kind,
		PodLabels: target.pod.Labels, PodAnnotations: target.pod.Annotations, WorkloadAnnotations: target.annotations,
		NamespaceAnnotations: w.namespaces[target.namespace].Annotations, NamespaceLabels: w.labelsOf(target.namespace),
	})
	switch {
	case d.Problem == profile.Ambiguous: // the older profile takes effect, and files do not show which one is older
		return nil, d
	case d.Profile != nil:
		return d.Profile, d
	case d.Problem == profile.Excluded:
		return nil, profile.Match{Why: d.Why}
	case w.sole != nil && (d.Problem == "" || d.Missing == w.sole.Ref.Name):
		return w.sole, d
	case d.Problem == "":
		d.Why = fmt.Sprintf(
			"no profile governs it: name one with annotation %s, or with --profile", v1alpha1.ProfileAnnotation,
		)
	}
	return nil, d
}

// sizesOf returns the recommended sizes of a workload's containers, if the profile sizes new pods.
func (w *world) sizesOf(target *workload, p *profile.Profile) map[string]inject.Offer {
	if !p.Spec.Sizing.Mode.SizesNewPods() {
		return nil
	}
	return inject.OffersIn(w.recommended(target))
}

// recommended returns the containers of a workload's MemoryRecommendation. It ignores recommendations of node classes.
func (w *world) recommended(target *workload) []v1alpha1.ContainerRecommendation {
	for i := range w.recommendations {
		m := &w.recommendations[i]
		if m.Status.Identity == nil && m.Status.Workload.Kind == target.kind && m.Status.Workload.Name == target.name &&
			m.Namespace == target.namespace {
			return m.Status.Containers
		}
	}
	return nil
}

// workload is an object in the manifests that has pods.
type workload struct {
	kind, namespace, name string

	annotations map[string]string
	template    *yaml.Node  // of the pods
	pod         *corev1.Pod // the decoded template
}

// String returns "Deployment shop/web".
func (w *workload) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.namespace, w.name) }

// objects returns the objects of a document: its mapping, or the items of a List.
func objects(root *yaml.Node) []*yaml.Node {
	if root == nil {
		return nil
	}
	top := root.Content[0]
	items := get(top, "items")
	if !strings.HasSuffix(text(top, "kind"), "List") || items == nil || items.Kind != yaml.SequenceNode {
		return []*yaml.Node{top}
	}
	out := make([]*yaml.Node, 0, len(items.Content))
	for _, item := range items.Content {
		if item.Kind == yaml.MappingNode {
			out = append(out, item)
		}
	}
	return out
}

func isWorkload(n *yaml.Node) bool {
	_, ok := workloadkind.Of(text(n, "apiVersion"), text(n, "kind"))
	return ok
}

// asWorkload reads an object that has pods; nil for every other kind.
func asWorkload(n *yaml.Node, namespace string) (*workload, error) {
	kind, ok := workloadkind.Of(text(n, "apiVersion"), text(n, "kind"))
	if !ok {
		return nil, nil //nolint:nilnil // other kinds are not an error
	}
	w := &workload{
		kind: text(n, "kind"), namespace: cmp.Or(text(n, "metadata", "namespace"), namespace),
		name: cmp.Or(text(n, "metadata", "name"), text(n, "metadata", "generateName")), pod: &corev1.Pod{},
	}
	if w.template = get(n, kind.Template...); w.template == nil || w.template.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s has no %s", w, strings.Join(kind.Template, "."))
	}
	if err := into(w.template, w.pod); err != nil {
		return nil, fmt.Errorf("%s is invalid: %w", w, err)
	}
	if a := get(n, "metadata", "annotations"); a != nil && len(kind.Template) > 0 {
		if err := into(a, &w.annotations); err != nil {
			return nil, fmt.Errorf("annotations of %s: %w", w, err)
		}
	}
	return w, nil
}
