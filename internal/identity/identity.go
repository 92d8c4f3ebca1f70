// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity groups pods of one kind that each have their own owner: steps of pipelines and workflows, runners,
// executors, sandboxes. Their identity replaces the owner as their workload, with history, kills, recommendation and
// canary.
//
// An identity is found from a table of platforms or from labels that a profile names. Users who may create pods control
// both, so an identity proves nothing: it includes the namespace, and all bounds of a profile apply.
//
// A DaemonSet outlives its pods, but these differ by node: [InClass] adds the class of a pod's node to the workload.
// The package is pure.
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
	// TimeToLive is how long records of an identity are kept after its last pod: four weekly runs and a week. See the API.
	TimeToLive = 35 * 24 * time.Hour
	// MaxPerProfile bounds the identities of one profile: two objects of some 10 KiB each, which is 20 MiB of etcd.
	MaxPerProfile = 1000
)

// Labeled is the platform of an identity by labels of a profile.
const Labeled = "labels"

// Identity identifies pods of one kind.
type Identity struct {
	// Platform is the name of the platform's row, [Labeled] or [ByNode].
	Platform string
	// Values identify the kind of pod, in the order of the row or of the profile's labels.
	Values []string
	// Keys are the labels that a profile names.
	Keys []string
	// labels are the pod's. All pods of the identity have equal values of those in equal, and have those in present.
	labels         map[string]string
	equal, present []string
}

// Of returns the identity of a pod with this topmost owner; false if the owner outlives its pods, or nothing identifies
// the pod. keys are the labels of the pod's profile; a pod without one of them has no identity of that profile.
func Of(pod metav1.Object, owner memory.WorkloadRef, keys []string) (Identity, bool) {
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

// Selector selects the pods of the identity in its namespace, and perhaps others. It selects everything if they have no
// common label, or one with an invalid value.
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

// String returns [Title].
func (id *Identity) String() string { return Title(id.Platform, id.Values) }

// Title returns "tekton: build-and-test/unit", or "daemonset/log [m5.large]" for a class of nodes.
func Title(platform string, values []string) string {
	if class := NodeClassOf(platform, values); class != "" {
		return OnNodes(workloadkind.Typed(workloadkind.OnEachNode().Name, values[0]), class)
	}
	return platform + ": " + strings.Join(values, "/")
}

// hashBytes is the length of a hash of an identity: the chance of a collision among a thousand is 1 in 10^13.
const hashBytes = 8

// maxReadable bounds the readable part of a name.
const maxReadable = 120

// Ref returns the name under which records of the identity are kept, as a workload of its own kind:
// "tekton-build-and-test-unit-4b2f8a9c01d2e3f4". The hash distinguishes values with equal readable parts.
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

// readable joins texts to a valid object name.
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

// Is reports whether a workload is an identity of pods.
func Is(w memory.WorkloadRef) bool { return workloadkind.IsIdentity(w.APIVersion, w.Kind) }

// UID replaces an owner's UID: an identity has no object, and exists as long as its records.
func UID(of memory.WorkloadRef) types.UID { return types.UID(of.Namespace + "/" + of.Name) }

// Annotations returns those that rows of the table read; caches must keep them.
func Annotations() []string { return []string{gitlabProject, gitlabJob} }

// isRun reports whether a name's end is of one run: five generated characters without vowels, or a time.
func isRun(end string) bool {
	if len(end) == 5 && strings.Trim(end, "bcdfghjklmnpqrstvwxz2456789") == "" {
		return true
	}
	return len(end) >= 8 && len(end) <= 19 && strings.Trim(end, "0123456789") == ""
}

// lasting returns a name without the ends of at most two nested runs: "build-x7k2p", "nightly-1764201600".
func lasting(name string) string {
	for range 2 {
		i := strings.LastIndexByte(name, '-')
		if i < 1 || !isRun(name[i+1:]) {
			break
		}
		name = name[:i]
	}
	return name
}
