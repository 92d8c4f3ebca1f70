// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/inject"
)

// What is read of a spec and of a container, which is what [inject.PodFields] lists.
var (
	specFields      = fieldsBelow("spec.")
	containerFields = fieldsBelow("spec.containers[].")
)

// fields are names of members, to be looked up for every member of every pod: by length first, which leaves one or two
// to compare.
type fields [32][]field

type field struct {
	name string
	bit  uint // which one it is, for [boundedjson.Scanner.Once]
}

// fieldsBelow are the names that come right after a prefix in the list.
func fieldsBelow(prefix string) *fields {
	var names []string
	for _, path := range inject.PodFields {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			name, _, _ = strings.Cut(name, ".")
			names = append(names, strings.TrimSuffix(name, "[]"))
		}
	}
	all := &fields{}
	for i, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		all[len(name)] = append(all[len(name)], field{name, uint(i)})
	}
	return all
}

// find is the field of that name; false when it is not read.
func (all *fields) find(key []byte) (bit uint, found bool) {
	if len(key) >= len(all) {
		return 0, false
	}
	for _, f := range all[len(key)] {
		if string(key) == f.name {
			return f.bit, true
		}
	}
	return 0, false
}
