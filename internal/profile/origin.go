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

// Value is a field of the policy for one container, and where it is from.
type Value struct {
	// Field is its path, as in "sizing.limit.max", Value what it says ("4Gi").
	Field string `json:"field"`
	Value string `json:"value"`
	// From is what says so: the profile ("ClusterMemoryProfile jvm"), one of its entries for containers ("MemoryProfile
	// shop/web, containers[app]"), a profile it inherits from ("MemoryProfile shop/base (defaults)"), or "default".
	From string `json:"from"`
}

const (
	// FromDefault is where values come from that nobody chose.
	FromDefault = "default"
	// FromClash is where a sizing.mode comes from while the one that is declared has to wait.
	FromClash = "memfit, until the profile and what it inherits fit together"
)

// Values are the fields of sizing, tuning, drift and identity that are effective for the container called name, in
// alphabetical order. They are those of [Profile.Container], which webhook and controllers use; only where each of them
// is set is found here. Of drift and identity, which are one for all containers, only what a profile sets is listed.
func (n *Profile) Values(name string) []Value {
	c := n.Container(name, nil)
	inForce := fields(map[string]any{
		"sizing": c.Sizing, "tuning": c.Tuning, "drift": n.Spec.Drift, "identity": n.Spec.Identity,
	})
	places := n.places(name)
	var out []Value
	for _, field := range slices.Sorted(maps.Keys(inForce)) {
		v := Value{Field: field, Value: inForce[field], From: from(places, field, inForce[field])}
		if n.held && field == "sizing.mode" {
			v.From = FromClash
		}
		out = append(out, v)
	}
	return out
}

// said is what one place says of a container: the fields that stand there.
type said struct {
	by     string
	fields map[string]string
}

// places are where values for the container called name may stand, the nearest first.
func (n *Profile) places(name string) []said {
	var all []said
	if entry, _ := n.entry(name); entry != nil {
		all = append(all, said{fmt.Sprintf("%s, containers[%s]", n, entry.Name), fields(map[string]any{
			"sizing": v1alpha1.SizingSpec{Limit: entry.Limit, Request: entry.Request}, "tuning": entry.Tuning,
		})})
	}
	all = append(all, said{n.String(), declared(n.Declared())})
	for _, d := range n.from {
		all = append(all, said{d.String() + " (defaults)", declared(d.Spec)})
	}
	return all
}

func declared(spec *v1alpha1.MemoryProfileSpec) map[string]string {
	return fields(map[string]any{
		"sizing": spec.Sizing, "tuning": spec.Tuning, "drift": spec.Drift, "identity": spec.Identity,
	})
}

// from is the nearest place that says value. A sidecar has values that no place says.
func from(places []said, field, value string) string {
	for _, p := range places {
		if p.fields[field] == value {
			return p.by
		}
	}
	return FromDefault
}

// origin is the nearest place that says anything about a field of the container called name.
func (n *Profile) origin(name, field string) string {
	for _, p := range n.places(name) {
		if _, found := p.fields[field]; found {
			return p.by
		}
	}
	return FromDefault
}

// fields are the leaves of a value as the API has it: path and text. Lists are one leaf.
func fields(value any) map[string]string {
	text, err := json.Marshal(value)
	if err != nil { // types of the API always can
		return nil
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
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
			text, err := json.Marshal(v)
			if err == nil {
				out[path+key] = string(text)
			}
		}
	}
}
