// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
)

// Options say how to inject.
type Options struct {
	// Namespace is that of objects which name none.
	Namespace string
	// Profiles is YAML that holds profiles to use besides those in the manifests. A single one governs every workload that
	// does not opt out and is not governed by another.
	Profiles []byte
}

// Result is what became of the manifests.
type Result struct {
	docs      []*document
	originals [][]byte // of changed documents, in the encoding of the changed one, by position
	titles    []string

	// Notes say per container what is set and what is left alone, for people.
	Notes []string
	// Problems are workloads that ask for a profile which cannot be applied; their pods would be admitted unchanged.
	Problems []string
	// Changed is the number of workloads that change.
	Changed int
}

// Inject plans and applies to every workload in manifests what the webhook would do to its pods.
func Inject(manifests []byte, o Options) (*Result, error) {
	r := &Result{docs: split(manifests)}
	world, err := newWorld(o)
	if err != nil {
		return nil, err
	}
	for i, d := range r.docs {
		if err := d.parse(); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if err := world.learn(d, false); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	world.know()
	for i, d := range r.docs {
		if err := r.document(d, world); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	r.Notes = append(world.complaints(), r.Notes...)
	return r, nil
}

func (r *Result) document(d *document, world *world) error {
	original, title := []byte(nil), ""
	for _, n := range objects(d) {
		w, err := asWorkload(d, n, world.namespace)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		if original == nil {
			if original, err = d.encode(d.root); err != nil {
				return err
			}
			title = w.String()
		}
		if err := r.workload(w, world); err != nil {
			return err
		}
	}
	r.originals, r.titles = append(r.originals, original), append(r.titles, title)
	return nil
}

func (r *Result) workload(w *workload, world *world) error {
	governed, match := world.match(w)
	if match.Problem != "" && governed == nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %s", w, match.Why))
		return nil
	}
	if governed == nil {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: unchanged, %s", w, match.Why))
		return nil
	}
	plan := inject.MakePlan(inject.Input{
		Pod: w.pod, Profile: governed, Sizes: world.sizesOf(w, governed), Observed: inject.ObservedIn(world.recommended(w)),
		ConfigMapKeys: world.keys[w.namespace],
	})
	r.note(w, plan)
	if !plan.Changes() {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: unchanged, there is nothing more that %s would set", w, governed))
		return nil
	}
	after := w.pod.DeepCopy()
	plan.Apply(after)
	if err := patch(w.template, w.pod, after); err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	w.doc.changed = true
	r.Changed++
	return nil
}

func (r *Result) note(w *workload, plan inject.Plan) {
	settings, skipped := plan.Settings(), plan.Skipped()
	for _, texts := range []map[string][]string{settings, skipped} {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			for _, text := range texts[name] {
				r.Notes = append(r.Notes, fmt.Sprintf("%s, container %s: %s", w, name, text))
			}
		}
	}
	for _, list := range [][]corev1.Container{w.pod.Spec.InitContainers, w.pod.Spec.Containers} {
		for i := range list {
			if text := silent(plan, list[i].Name, settings, skipped); text != "" {
				r.Notes = append(r.Notes, fmt.Sprintf("%s, container %s: %s", w, list[i].Name, text))
			}
		}
	}
	for _, text := range plan.EveryWarning() {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: warning: %s", w, text))
	}
}

// silent says why nothing was said about a container; empty when something was, or when the profile does not manage it.
func silent(plan inject.Plan, name string, settings, skipped map[string][]string) string {
	switch mode := plan.Mode(name); {
	case mode == "" || len(settings[name])+len(skipped[name]) > 0:
		return ""
	case mode == v1alpha1.TuningOff:
		return `tuning.mode is "Off"`
	}
	return "nothing to set: " + plan.RuntimeOf(name)
}

// YAML is the stream with its changed documents written anew and all others byte for byte.
func (r *Result) YAML() ([]byte, error) {
	var out bytes.Buffer
	for _, d := range r.docs {
		text, err := d.bytes()
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// JSON is the only object of the stream, or a List of all of them.
func (r *Result) JSON() ([]byte, error) {
	items := make([]any, 0, len(r.docs))
	for _, d := range r.docs {
		if d.root == nil {
			continue
		}
		value, err := decode(d.root)
		if err != nil {
			return nil, err
		}
		items = append(items, value)
	}
	var value any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		value = items[0]
	}
	out, err := json.MarshalIndent(value, "", "  ")
	return append(out, '\n'), err
}
