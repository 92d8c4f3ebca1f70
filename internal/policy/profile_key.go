// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// ProfileKey names one profile; the namespace is empty for a ClusterMemoryProfile.
type ProfileKey struct{ Kind, Namespace, Name string }

// String is "MemoryProfile shop/web".
func (k ProfileKey) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}
