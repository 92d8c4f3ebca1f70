// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package records decides to which workload a stored MemoryRecommendation or MemoryCheckpoint belongs: the existing
// one, an earlier one of the same name, or none. The UID in the record's owner reference decides. A workload that is
// deleted and created again gets a new record, which starts with the evidence about its programs.
//
// The package is pure: the state of the workload is an argument. An unknown state never causes a deletion.
package records

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// State tells whether a workload exists.
type State int

// States of a workload. The zero value is the safe one: nothing is created or deleted.
const (
	Unknown State = iota // its kind cannot be read here, or reading it failed
	Exists
	Terminating // it has a deletionTimestamp
	Gone        // the API server reported that the name does not exist
)

// Presence is the state and UID of a workload.
type Presence struct {
	State State
	// UID of the current object with the workload's name; empty if missing or unreadable.
	UID types.UID
}

// Orphaned returns why a record with these owners must be deleted: it is about another workload. "": keep it.
func Orphaned(owners []metav1.OwnerReference, of memory.WorkloadRef, p Presence) (why string) {
	if workloadkind.IsIdentity(of.APIVersion, of.Kind) { // its record has a time to live instead of an owner
		return ""
	}
	uid, owned := OwnerUID(owners, of)
	switch {
	case p.State == Gone:
		return of.String() + " does not exist"
	case p.UID == "": // unknown
		return ""
	case owned && uid == p.UID:
		return ""
	case owned && p.State == Unknown: // the UID is from a pod's reference: enough for a write, not for a deletion
		return ""
	case owned:
		return "it was written for an earlier " + of.String() + ", whose UID was " + string(uid)
	case p.State == Exists: // memfit did not write the record, because it always writes an owner
		return "it has no owner reference"
	default:
		return ""
	}
}

// OwnerUID returns the UID of a workload in the owner references of a record. owned is false if no reference has the
// group, kind and name of the workload.
func OwnerUID(refs []metav1.OwnerReference, of memory.WorkloadRef) (uid types.UID, owned bool) {
	group := workloadkind.Group(of.APIVersion)
	for i := range refs {
		if refs[i].Kind == of.Kind && refs[i].Name == of.Name && workloadkind.Group(refs[i].APIVersion) == group {
			return refs[i].UID, true
		}
	}
	return "", false
}

// UsableFor reports whether a new pod may use a record: the record's owner is the pod's workload. An empty UID, as at
// the start of a rollout, matches any. A bare pod uses no record, because a record of its name is about an earlier pod.
func UsableFor(refs []metav1.OwnerReference, of memory.WorkloadRef, uid types.UID) bool {
	if workloadkind.IsPod(of.APIVersion, of.Kind) {
		return false
	}
	if workloadkind.IsIdentity(of.APIVersion, of.Kind) { // the name of the record is the identity
		return true
	}
	owner, owned := OwnerUID(refs, of)
	return owned && (uid == "" || uid == owner)
}

// Owners returns the owner reference of a record, for garbage collection; none for an identity, which is not an object.
func Owners(of memory.WorkloadRef, uid types.UID) []metav1.OwnerReference {
	if workloadkind.IsIdentity(of.APIVersion, of.Kind) {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name, UID: uid}}
}
