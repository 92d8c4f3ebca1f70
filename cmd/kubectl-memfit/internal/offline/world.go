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
	// sole is the only profile of Options.Profiles that may govern a pod.
	sole  *profile.Profile
	index *profile.Index

	namespaces      map[string]metav1.ObjectMeta          // with labels and annotations
	keys            map[string]map[string]map[string]bool // keys by namespace and ConfigMap
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
	governing := slices.DeleteFunc(slices.Clone(w.profiles), func(p profile.Profile) bool { return p.GivesDefaults() })
	if len(governing) == 1 {
		w.sole = &governing[0]
	}
	if len(o.Profiles) > 0 && len(w.profiles) == 0 {
		return nil, fmt.Errorf("the profile file holds no %s and no %s", profile.KindNamespaced, profile.KindCluster)
	}
	return w, nil
}

// addObject adds an object that is not a workload; from the profile file it adds only profiles. Of kinds other than
// memfit's it reads only the needed fields, so that errors in the other fields do not matter.
func (w *world) addObject(n *yaml.Node, onlyProfiles bool) error {
	name, namespace := text(n, "metadata", "name"), cmp.Or(text(n, "metadata", "namespace"), w.namespace)
	var err error
	switch kind := workloadkind.Group(text(n, "apiVersion")) + "/" + text(n, "kind"); {
	case kind == v1alpha1.Group+"/MemoryProfile":
		var p v1alpha1.MemoryProfile
		if err = intoProfile(n, &p, &p.ObjectMeta, memoryProfiles); err == nil {
			p.Namespace = namespace
			err = w.add(profile.Of(&p))
		}
	case kind == v1alpha1.Group+"/ClusterMemoryProfile":
		var p v1alpha1.ClusterMemoryProfile
		if err = intoProfile(n, &p, &p.ObjectMeta, clusterMemoryProfiles); err == nil {
			p.Namespace = ""
			err = w.add(profile.OfCluster(&p))
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

// labelsOf returns the labels of a namespace; the API server adds its name.
func (w *world) labelsOf(namespace string) map[string]string {
	all := map[string]string{corev1.LabelMetadataName: namespace}
	maps.Copy(all, w.namespaces[namespace].Labels)
	return all
}

// add adds a profile once: a profile file may also be part of the manifests. It refuses what the webhook refuses.
func (w *world) add(n profile.Profile) error {
	if errs := n.Refused(); len(errs) > 0 {
		return errs.ToAggregate()
	}
	n.Generation = max(n.Generation, 1)
	if !slices.ContainsFunc(
		w.profiles, func(p profile.Profile) bool { return p.Ref == n.Ref && p.Namespace == n.Namespace },
	) {
		w.profiles = append(w.profiles, n)
	}
	return nil
}

// buildIndex indexes the profiles. Call it after all objects are added, because profiles in the manifests may hold the
// defaults of profiles in the profile file.
func (w *world) buildIndex() {
	w.index = profile.NewIndex(w.profiles)
	if w.sole != nil { // the list has been reallocated
		w.sole = w.index.Exactly(w.sole.Key())
	}
}

// problems returns the conflicts between profiles.
func (w *world) problems() []string {
	var out []string
	for i := range w.profiles {
		n := &w.profiles[i]
		for _, text := range n.Clashes() {
			out = append(out, fmt.Sprintf("%s: %s", n, text))
		}
		if counts := w.index.Defaults(n.Namespace); n.GivesDefaults() && counts.Ref != n.Ref {
			out = append(out, fmt.Sprintf("%s: has no effect, because %s also has role: Defaults and takes effect here: "+
				"move the values into one of them", n, counts))
		}
	}
	return out
}

// match finds the workload's profile as the webhook does, and falls back to the only profile of the profile file,
// in any namespace, unless the workload opts out or names another.
func (w *world) match(l *workload) (*profile.Profile, profile.Match) {
	d := w.index.Match(profile.Subject{
		Namespace: l.namespace, WorkloadKind: l.kind, PodLabels: l.pod.Labels, PodAnnotations: l.pod.Annotations,
		WorkloadAnnotations: l.annotations, NamespaceAnnotations: w.namespaces[l.namespace].Annotations,
		NamespaceLabels: w.labelsOf(l.namespace),
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
			"no profile governs it: name one with annotation %s, or pass --profile", v1alpha1.ProfileAnnotation,
		)
	}
	return nil, d
}

// sizesOf returns the workload's sizes in a MemoryRecommendation of the manifests, if the profile sizes new pods.
func (w *world) sizesOf(l *workload, n *profile.Profile) map[string]inject.Offer {
	if !n.Spec.Sizing.Mode.SizesNewPods() {
		return nil
	}
	return inject.OffersIn(w.recommended(l))
}

// recommended returns the containers of a workload's MemoryRecommendation in the manifests. It omits recommendations of
// node classes.
func (w *world) recommended(l *workload) []v1alpha1.ContainerRecommendation {
	for i := range w.recommendations {
		m := &w.recommendations[i]
		if m.Status.Identity == nil && m.Status.Workload.Kind == l.kind && m.Status.Workload.Name == l.name &&
			m.Namespace == l.namespace {
			return m.Status.Containers
		}
	}
	return nil
}

// workload is an object with pods in a stream.
type workload struct {
	template *yaml.Node

	kind, namespace, name string
	// annotations are the object's own; pod is its template as a pod.
	annotations map[string]string
	pod         *corev1.Pod
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
		return nil, fmt.Errorf("%s is not a %s: %w", w, w.kind, err)
	}
	if a := get(n, "metadata", "annotations"); a != nil && len(kind.Template) > 0 {
		if err := into(a, &w.annotations); err != nil {
			return nil, fmt.Errorf("annotations of %s: %w", w, err)
		}
	}
	return w, nil
}
