// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Value is a field of one container's policy, with its source.
type Value struct {
	Field string `json:"field"` // the path, such as "sizing.limit.max"
	Value string `json:"value"` // "4Gi"
	// From is the source: the profile ("ClusterMemoryProfile jvm"), one of its entries for containers ("MemoryProfile
	// shop/web, containers[app]"), a profile it inherits from ("MemoryProfile shop/base (defaults)"), or "default".
	From string `json:"from"`
}

const (
	// FromDefault is the source of built-in values.
	FromDefault = "default"
	// FromClash is the source of sizing.mode while clashes disable the declared one.
	FromClash = "memfit, until the profile and its defaults are consistent"
)

// Values returns the effective fields of sizing, tuning, drift and identity of the named container, sorted by path. Of
// drift and identity, it returns only fields that a profile sets.
func (n *Profile) Values(name string) []Value {
	c := n.Container(name, nil)
	effective := declared(&v1alpha1.MemoryProfileSpec{
		Sizing: c.Sizing, Tuning: c.Tuning, Drift: n.Spec.Drift, Identity: n.Spec.Identity,
	})
	sources := n.sources(name)
	var out []Value
	for _, field := range slices.Sorted(maps.Keys(effective)) {
		v := Value{Field: field, Value: effective[field], From: from(sources, field, effective[field])}
		if n.suspended && field == "sizing.mode" {
			v.From = FromClash
		}
		out = append(out, v)
	}
	return out
}

// source has the fields that one source sets for a container.
type source struct {
	by     string
	fields map[string]string
}

// sources returns the possible sources of values of the named container, the nearest first.
func (n *Profile) sources(name string) []source {
	var all []source
	if entry, _ := n.entry(name); entry != nil {
		all = append(all, source{fmt.Sprintf("%s, containers[%s]", n, entry.Name), declared(&v1alpha1.MemoryProfileSpec{
			Sizing: v1alpha1.SizingSpec{Limit: entry.Limit, Request: entry.Request},
			Tuning: *orPointer(entry.Tuning, &v1alpha1.TuningSpec{}),
		})})
	}
	all = append(all, source{n.String(), declared(n.Declared())})
	for _, d := range n.from {
		all = append(all, source{d.String() + " (defaults)", declared(d.Spec)})
	}
	return all
}

// from returns the nearest source with this value; [FromDefault]: none, as for values that a sidecar does not inherit.
func from(sources []source, field, value string) string {
	for _, p := range sources {
		if p.fields[field] == value {
			return p.by
		}
	}
	return FromDefault
}

// origin returns the nearest source that sets a field of the named container.
func (n *Profile) origin(name, field string) string {
	for _, p := range n.sources(name) {
		if _, found := p.fields[field]; found {
			return p.by
		}
	}
	return FromDefault
}

// declared returns the leaves of a spec: path and text. Lists are one leaf.
func declared(spec *v1alpha1.MemoryProfileSpec) map[string]string {
	text, err := json.Marshal(map[string]any{
		"sizing": spec.Sizing, "tuning": spec.Tuning, "drift": spec.Drift, "identity": spec.Identity,
	})
	var tree map[string]any
	if err != nil || json.Unmarshal(text, &tree) != nil { // impossible for types of the API
		return nil
	}
	out := map[string]string{}
	leaves(out, "", tree)
	return out
}

func leaves(out map[string]string, path string, tree map[string]any) {
	for key, value := range tree {
		switch v := value.(type) {
		case map[string]any:
			leaves(out, path+key+".", v)
		case string:
			out[path+key] = v
		case nil:
		default:
			text, _ := json.Marshal(v) // no error, because v was read from JSON
			out[path+key] = string(text)
		}
	}
}
