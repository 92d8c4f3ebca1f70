// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longExponent matches a text that is a number with an exponent of three or more digits. As a quantity it takes minutes
// to read.
var longExponent = regexp.MustCompile(`"[-+]?[0-9.]+[eE][-+]?[0-9.]{3,}"`)

// UnmarshalJSON reads a snapshot. Of one with an unreadable status it reads the metadata only, without an error: each
// node's agent writes its own snapshots, and informers read those of all nodes in one list, which an error would end.
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
