// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"crypto/sha256"
	"strings"
	"sync"

	"k8s.io/utils/lru"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/webhooks/pod"
)

// The replicas of a workload are alike in all that a plan is made from, and they come together: when it is rolled out,
// scaled up, or moved off a node. A plan is a function of its input, so the first replica's serves the others.
const (
	// maxOutcomes bounds what is remembered: some 10 MB when it is full, of the templates that were used last.
	maxOutcomes = 2048
	// maxResult is the longest answer that is remembered. Usual ones have 2 to 4 KB.
	maxResult = 16 << 10
	// maxAnnotations is how much a pod may have of them for its outcome to be remembered. The API server takes 256 KiB
	// with memfit's own, so below this a record that is short enough to be remembered always fits, whatever the others
	// say.
	maxAnnotations = 64 << 10
)

// cacheKey is all that an outcome depends on. Pods are alike when theirs are equal.
type cacheKey struct {
	inputs pod.Inputs
	// template is a digest of what is said of the pod itself.
	template [sha256.Size]byte
}

// patchCache are the outcomes for the pods that came last.
type patchCache struct {
	once sync.Once
	last *lru.Cache
}

func (k *patchCache) cache() *lru.Cache {
	k.once.Do(func() { k.last = lru.New(maxOutcomes) })
	return k.last
}

// get is the outcome for pods of that likeness, nil when none is remembered. It is shared: only read it.
func (k *patchCache) get(of cacheKey) *pod.Outcome {
	found, _ := k.cache().Get(of)
	o, _ := found.(*pod.Outcome)
	return o
}

// add remembers an outcome, as its result, which it returns: the patch itself stands in memory that is used again. Nil:
// it is too long.
func (k *patchCache) add(of cacheKey, o *pod.Outcome) []byte {
	result := AppendResult(nil, o.Patch, o.Warnings)
	if len(result) > maxResult {
		return nil
	}
	k.cache().Add(of, &pod.Outcome{Response: pod.Response{Result: result}, Counters: o.Counters, Need: o.Need})
	return result
}

func sizeOf(annotations map[string]string) (size int) {
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// ownPrefix begins the annotations of a pod that a plan may depend on.
const ownPrefix = v1alpha1.Group + "/"

// ownAnnotations are those annotations; nil when there are none.
func ownAnnotations(all map[string]string) map[string]string {
	var own map[string]string
	for key, value := range all {
		if strings.HasPrefix(key, ownPrefix) {
			if own == nil {
				own = make(map[string]string, 2)
			}
			own[key] = value
		}
	}
	return own
}
