// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package records decides to which workload a stored MemoryRecommendation or MemoryCheckpoint belongs: the one that
// exists, an earlier one of the same name, or none. A record lives and dies with its workload, which its UID
// identifies; a workload that is deleted and created again starts afresh, because it may run another program.
//
// It is pure: what exists is an argument, and an unknown state never causes a deletion.
package records

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// State is whether a workload exists.
type State int

// States of a workload. The zero value is the careful one: what is not known is neither created nor deleted.
const (
	Unknown State = iota // its kind cannot be read here, or reading it failed
	Exists
	Leaving // it has a deletionTimestamp
	Gone    // the API server reported that there is none of that name
)

// Presence is what is known of a workload.
type Presence struct {
	State State
	// UID is that of the object that has the workload's name now; empty when there is none, or it could not be read.
	UID types.UID
}

// Orphaned returns why a record of a workload, which names these owners, is to be deleted: it is known not to be about
// the workload that exists. "": it is kept.
func Orphaned(owners []metav1.OwnerReference, of memory.WorkloadRef, p Presence) (why string) {
	if workloadkind.IsIdentity(of.APIVersion, of.Kind) { // it has no owner, and ends with its time to live
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
	case owned && p.State == Unknown: // the UID comes from a pod's reference: good enough to write with, not to delete by
		return ""
	case owned:
		return "it was written for an earlier " + of.String() + ", whose UID was " + string(uid)
	case p.State == Exists: // memfit writes none without, so it may be about any workload that had this name
		return "it names no owner"
	default:
		return ""
	}
}

// OwnerUID is the UID of the workload that a record names as its owner; owned is false when it does not name one of
// that kind and name.
func OwnerUID(refs []metav1.OwnerReference, of memory.WorkloadRef) (uid types.UID, owned bool) {
	group := workloadkind.Group(of.APIVersion)
	for i := range refs {
		if refs[i].Kind == of.Kind && refs[i].Name == of.Name && workloadkind.Group(refs[i].APIVersion) == group {
			return refs[i].UID, true
		}
	}
	return "", false
}

// BelongTo reports whether a new pod may be given the content of a record: it names the workload as its owner, and
// that is the pod's. An unknown UID, as in the first moments of a rollout, does not contradict. A pod that is its own
// workload is only being created, and what was written for one of its name before was about another program.
func BelongTo(refs []metav1.OwnerReference, of memory.WorkloadRef, uid types.UID) bool {
	if workloadkind.IsPod(of.APIVersion, of.Kind) {
		return false
	}
	if workloadkind.IsIdentity(of.APIVersion, of.Kind) { // whose name is its identity
		return true
	}
	owner, owned := OwnerUID(refs, of)
	return owned && (uid == "" || uid == owner)
}

// Owners returns the reference that a record of this workload carries, so that the garbage collector removes it with
// its workload; none for an identity, which has no object.
func Owners(of memory.WorkloadRef, uid types.UID) []metav1.OwnerReference {
	if workloadkind.IsIdentity(of.APIVersion, of.Kind) {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name, UID: uid}}
}
