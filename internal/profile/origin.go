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
	// shop/web, containers[app]"), or "default". A profile that says what is the default anyway counts as the default:
	// the API server fills defaults in, so that a stored profile does not tell who wrote it.
	From string `json:"from"`
}

// FromDefault is where values come from that nobody chose.
const FromDefault = "default"

// Values are the fields of sizing and tuning that are in force for the container called name, in alphabetical order.
// They are those of [Named.Container], which webhook and controllers ask; what is looked up here is only where each of
// them stands.
func (n *Named) Values(name string) []Value {
	of := func(c Container) map[string]string {
		return fields(map[string]any{"sizing": c.Sizing, "tuning": c.Tuning})
	}
	inForce := of(n.Container(name, nil))
	none := Named{Spec: &v1alpha1.MemoryProfileSpec{}}
	defaults := of(none.Container(name, nil))
	declared := fields(map[string]any{"sizing": n.Spec.Sizing, "tuning": n.Spec.Tuning})
	entry, _ := n.entry(name)
	own := map[string]string{}
	if entry != nil {
		own = fields(map[string]any{
			"sizing": v1alpha1.SizingSpec{Limit: entry.Limit, Request: entry.Request}, "tuning": entry.Tuning,
		})
	}
	var out []Value
	for _, field := range slices.Sorted(maps.Keys(inForce)) {
		v := Value{Field: field, Value: inForce[field], From: FromDefault}
		switch {
		case v.Value == defaults[field]:
		case own[field] == v.Value:
			v.From = fmt.Sprintf("%s, containers[%s]", n, entry.Name)
		case declared[field] == v.Value:
			v.From = n.String()
		}
		out = append(out, v)
	}
	return out
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
