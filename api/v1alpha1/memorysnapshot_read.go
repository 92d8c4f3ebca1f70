// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longExponent matches numbers with an exponent of three or more digits, which take minutes to parse as a quantity.
var longExponent = regexp.MustCompile(`"[-+]?[0-9.]+[eE][-+]?[0-9.]{3,}"`)

// UnmarshalJSON reads a snapshot. If the status is unreadable, it reads only the metadata and returns no error: an
// error would fail the informer's list of all nodes' snapshots, and any node's agent can write one.
func (s *MemorySnapshot) UnmarshalJSON(data []byte) error {
	type plain MemorySnapshot // without this method
	var all plain
	if !longExponent.Match(data) && json.Unmarshal(data, &all) == nil {
		*s = MemorySnapshot(all)
		return nil
	}
	var named metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &named); err != nil {
		return fmt.Errorf("reading the metadata of a MemorySnapshot: %w", err)
	}
	*s = MemorySnapshot{TypeMeta: named.TypeMeta, ObjectMeta: named.ObjectMeta}
	return nil
}
