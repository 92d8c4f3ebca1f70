// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package offline applies the webhook's changes to the pods in manifests, for `kubectl memfit inject`. It is pure and
// needs no cluster. It returns unchanged documents byte for byte.
package offline

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
)

// Options are the input besides the manifests.
type Options struct {
	// Namespace is the default for objects without a namespace.
	Namespace string
	// Profiles is YAML with profiles besides those in the manifests. A single profile governs every workload that does
	// not opt out and has no other profile.
	Profiles []byte
}

// Result is the result for the manifests.
type Result struct {
	docs []*document

	// Notes list the settings of each container that were set or skipped, with reasons.
	Notes []string
	// Problems list unreadable documents, and workloads whose profile is missing or ambiguous. All of them are unchanged.
	Problems []string
	// Changed is the number of changed workloads.
	Changed int
}

// Inject applies the webhook's changes. It parses one document at a time: a tree takes twenty times the memory of text.
func Inject(manifests []byte, o Options) (*Result, error) {
	r := &Result{docs: split(manifests)}
	world, err := newWorld(o)
	if err != nil {
		return nil, err
	}
	for i, d := range r.docs {
		r.read(i, d, world)
	}
	world.buildIndex()
	for i, d := range r.docs {
		if d.hasWorkloads {
			r.inject(i, d, world)
		}
	}
	r.Notes = append(world.problems(), r.Notes...)
	return r, nil
}

// read reads the objects of a document that are not workloads.
func (r *Result) read(i int, d *document, world *world) {
	root, err := d.tree()
	if err != nil {
		r.unchanged(i, d.placed(err, len(r.Problems)))
		return
	}
	for _, n := range objects(root) {
		if err := world.addObject(n, false); err != nil {
			r.unchanged(i, err)
		}
		d.hasWorkloads = d.hasWorkloads || isWorkload(n)
	}
}

// unchanged records why document i is unchanged.
func (r *Result) unchanged(i int, err error) {
	r.Problems = append(r.Problems, fmt.Sprintf("document %d is unchanged: %v", i+1, err))
}

func (r *Result) inject(i int, d *document, world *world) {
	root, err := d.tree()
	if err != nil {
		r.unchanged(i, err)
		return
	}
	changed := 0
	for _, n := range objects(root) {
		w, err := asWorkload(n, world.namespace)
		if err != nil {
			r.unchanged(i, err)
			continue
		}
		if w == nil {
			continue
		}
		if d.title == "" {
			d.title = w.String()
		}
		changes, err := r.workload(w, world)
		if err != nil { // drop the tree, which may be partly changed
			r.unchanged(i, err)
			return
		}
		if changes {
			changed++
		}
	}
	if changed == 0 {
		return
	}
	text, err := d.encode(root)
	if err != nil {
		r.unchanged(i, err)
		return
	}
	d.text = text
	r.Changed += changed
}

// workload applies the changes to a workload and reports whether there are any.
func (r *Result) workload(w *workload, world *world) (bool, error) {
	governed, match := world.match(w)
	if match.Problem != "" && governed == nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %s", w, match.Why))
		return false, nil
	}
	if governed == nil {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: unchanged, %s", w, match.Why))
		return false, nil
	}
	plan := inject.MakePlan(inject.Input{
		Pod: w.pod, Profile: governed, Sizes: world.sizesOf(w, governed), Observed: inject.ObservedIn(world.recommended(w)),
		ConfigMapKeys: world.keys[w.namespace],
	})
	r.note(w, plan)
	if !plan.Changes() {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: unchanged, %s sets nothing more", w, governed))
		return false, nil
	}
	if err := patch(w.template, plan.Patch(w.pod)); err != nil {
		return false, fmt.Errorf("%s: %w", w, err)
	}
	return true, nil
}

func (r *Result) note(w *workload, plan inject.Plan) {
	for c := range constraints.Containers(&w.pod.Spec) {
		for _, text := range texts(plan.Container(c.Name)) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, container %s: %s", w, c.Name, text))
		}
	}
	for _, text := range plan.EveryWarning() {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: warning: %s", w, text))
	}
}

// texts returns the notes about a container that the profile manages: settings set or skipped, or why there are none.
func texts(c *inject.ContainerPlan) []string {
	texts := slices.Concat(c.Settings(), c.Skipped())
	switch mode := c.Mode(); {
	case mode == "" || len(texts) > 0:
		return texts
	case mode == v1alpha1.TuningDisabled:
		return []string{`tuning.mode is Disabled`}
	}
	return []string{"nothing to set: " + c.Runtime()}
}

// YAML returns all documents. Changed documents are encoded anew; the others are returned byte for byte.
func (r *Result) YAML() []byte {
	var out bytes.Buffer
	for _, d := range r.docs {
		out.Write(d.marker)
		if d.text != nil {
			out.Write(d.text)
		} else {
			out.Write(d.raw)
		}
	}
	return out.Bytes()
}

// Diff returns a unified diff for each changed document. Both sides are encoded anew, so it has only memfit's changes.
func (r *Result) Diff() ([]byte, error) {
	var out bytes.Buffer
	for _, d := range r.docs {
		if d.text == nil {
			continue
		}
		root, err := d.tree()
		if err != nil {
			return nil, err
		}
		before, err := d.encode(root)
		if err != nil {
			return nil, err
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(string(before))), B: slices.Collect(strings.Lines(string(d.text))),
			FromFile: d.title, ToFile: d.title + " with memfit", Context: 3,
		})
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", d.title, err)
		}
		out.WriteString(text)
	}
	return out.Bytes(), nil
}
