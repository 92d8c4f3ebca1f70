// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity groups pods of one kind whose owners differ: steps of pipelines and workflows, runners, executors,
// sandboxes. The webhook and the controllers use the identity of such a pod instead of its owner as the workload, which
// has history, kills, a recommendation and a canary.
//
// An identity is found by a table of platforms, or by labels that a profile names. Users who may create pods control
// both, so an identity proves nothing: it includes the namespace, and all bounds of a profile apply.
//
// Pods of a DaemonSet have one owner but differ by node: [InClass] adds the class of a pod's node to the workload. The
// package performs no I/O.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

const (
	// TimeToLive is how long records of an identity are kept after its last pod: four weekly runs and a week.
	TimeToLive = 35 * 24 * time.Hour
	// MaxPerProfile bounds the identities of one profile. Each has two objects of some 10 KiB, so they take 20 MiB of
	// etcd.
	MaxPerProfile = 1000
)

// Labeled is the platform of an identity by labels that a profile names.
const Labeled = "labels"

// Identity identifies pods of one kind.
type Identity struct {
	Platform string   // the name in the table of platforms, [Labeled] or [ByNode]
	Values   []string // identify the kind of pod, in the order of the platform or of Keys
	Keys     []string // the labels that a profile names

	labels  map[string]string // the labels of one pod of the identity
	equal   []string          // the labels that have equal values in all its pods
	present []string          // the labels whose values differ by run
}

// Find returns the identity of a pod with this topmost owner; false if the owner outlives its pods, or nothing
// identifies the pod. keys are the labels that the pod's profile names; if there are any, only these identify the pod,
// and a pod without one of them has no identity.
func Find(pod metav1.Object, owner memory.WorkloadRef, keys []string) (Identity, bool) {
	if workloadkind.Lasting(owner.APIVersion, owner.Kind) {
		return Identity{}, false
	}
	if len(keys) > 0 {
		return labeled(pod.GetLabels(), keys)
	}
	for i := range platforms {
		p := &platforms[i]
		if values, found := p.identify(pod, owner); found {
			id := Identity{Platform: p.Name, Values: values, labels: pod.GetLabels(), equal: p.equal, present: p.present}
			return id, true
		}
	}
	return Identity{}, false
}

func labeled(of map[string]string, keys []string) (Identity, bool) {
	id := Identity{Platform: Labeled, Keys: keys, labels: of, equal: keys}
	for _, key := range keys {
		value := of[key]
		if value == "" {
			return Identity{}, false
		}
		id.Values = append(id.Values, value)
	}
	return id, true
}

// Selector returns a selector of the identity's pods in its namespace, and perhaps of other pods. It omits labels with
// invalid values; without a label it selects all pods.
func (id *Identity) Selector() labels.Selector {
	selector := labels.NewSelector()
	add := func(key string, op selection.Operator, values ...string) {
		if r, err := labels.NewRequirement(key, op, values); err == nil {
			selector = selector.Add(*r)
		}
	}
	for _, key := range id.equal {
		if value, found := id.labels[key]; found {
			add(key, selection.Equals, value)
		}
	}
	for _, key := range id.present {
		if _, found := id.labels[key]; found {
			add(key, selection.Exists)
		}
	}
	return selector
}

// String returns the [Title] of the identity.
func (id *Identity) String() string { return Title(id.Platform, id.Values) }

// Title returns "tekton: build-and-test/unit", or "daemonset/log [m5.large]" for a class of nodes.
func Title(platform string, values []string) string {
	if class := NodeClassOf(platform, values); class != "" {
		return OnNodes(workloadkind.Typed(workloadkind.OnEachNode().Name, values[0]), class)
	}
	return platform + ": " + strings.Join(values, "/")
}

// hashBytes is the length of the hash in a name. The probability of a collision among a thousand identities is 1 in
// 10^13.
const hashBytes = 8

// maxReadable bounds the readable part of a name.
const maxReadable = 120

// Ref returns a workload reference for the records of the identity. Its name is like
// "tekton-build-and-test-unit-4b2f8a9c01d2e3f4"; the hash distinguishes values with equal readable parts.
func (id *Identity) Ref(namespace string) memory.WorkloadRef {
	h := sha256.New()
	for _, list := range [][]string{{id.Platform}, id.Keys, id.Values} {
		for _, text := range list {
			h.Write([]byte(text))
			h.Write([]byte{0})
		}
		h.Write([]byte{1})
	}
	name := readable(append([]string{id.Platform}, id.Values...)) + "-" + hex.EncodeToString(h.Sum(nil)[:hashBytes])
	return memory.WorkloadRef{
		APIVersion: workloadkind.IdentityAPIVersion, Kind: workloadkind.IdentityKind, Namespace: namespace, Name: name,
	}
}

// readable joins texts to a valid object name of at most maxReadable characters.
func readable(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteByte('-')
		for _, c := range strings.ToLower(text) {
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
				b.WriteRune(c)
			} else {
				b.WriteByte('-')
			}
		}
	}
	parts := strings.FieldsFunc(b.String(), func(c rune) bool { return c == '-' })
	name := strings.Join(parts, "-")
	return strings.TrimRight(name[:min(len(name), maxReadable)], "-")
}

// IsIdentity reports whether a workload is an identity of pods.
func IsIdentity(w memory.WorkloadRef) bool { return workloadkind.IsIdentity(w.APIVersion, w.Kind) }

// UID returns a substitute for an owner's UID. An identity has no object with a UID.
func UID(of memory.WorkloadRef) types.UID { return types.UID(of.Namespace + "/" + of.Name) }

// Annotations returns the pod annotations that the table of platforms reads. Caches must keep them.
func Annotations() []string { return []string{gitlabProject, gitlabJob} }

// isRun reports whether the end of a name is specific to a run: five characters generated by the API server, or a time.
func isRun(end string) bool {
	if len(end) == 5 && strings.Trim(end, "bcdfghjklmnpqrstvwxz2456789") == "" {
		return true
	}
	return len(end) >= 8 && len(end) <= 19 && strings.Trim(end, "0123456789") == ""
}

// withoutRuns returns a name without the ends of at most two nested runs: "build" for "build-x7k2p" and
// "build-1764201600-x7k2p".
func withoutRuns(name string) string {
	for range 2 {
		i := strings.LastIndexByte(name, '-')
		if i < 1 || !isRun(name[i+1:]) {
			break
		}
		name = name[:i]
	}
	return name
}
