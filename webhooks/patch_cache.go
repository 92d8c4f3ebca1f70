// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/neighbours"
	"github.com/memfit/memfit/internal/review"
)

// The replicas of a workload are alike in all that a plan is made from, and they come together: when it is rolled out, scaled up, or moved
// off a node. A plan is a function of its input, so the first replica's serves the others.
const (
	// maxOutcomes bounds what is remembered: some 10 MB when it is full, of the templates that were used last.
	maxOutcomes = 2048
	// maxResult is the longest answer that is remembered. Usual ones have 2 to 4 KB.
	maxResult = 16 << 10
	// maxAnnotations is how much a pod may have of them for its outcome to be remembered. The API server takes 256 KiB with memfit's own, so
	// below this a record that is short enough to be remembered always fits, whatever the others say.
	maxAnnotations = 64 << 10
)

// outcome is what becomes of a pod, and of all that are like it.
type outcome struct {
	answer
	// counters count what became of each container that the plan speaks of.
	counters []prometheus.Counter
	// need is what a quota would count of the pod, if it is sized. Where one has no room for it, another outcome is right.
	need neighbours.Size
}

// cacheKey is all that an outcome depends on. Pods are alike when theirs are equal.
type cacheKey struct {
	// profile and generation say which spec governs.
	profile    types.UID
	generation int64
	// recommendation and version say what sizes are recommended and what is alive in running heaps; empty: nothing is known. paused: the
	// sizes wait.
	recommendation types.UID
	version        string
	paused         bool
	// limitRanges and largestNode say what a recommended size has to fit into. Quotas are no part of it: see outcome.need.
	limitRanges uint64
	largestNode memory.Bytes
	// template is a digest of what is said of the pod itself.
	template [sha256.Size]byte
}

// patchCache are the patchCache for the pods that came last.
type patchCache struct {
	once sync.Once
	last *lru.Cache
}

func (k *patchCache) cache() *lru.Cache {
	k.once.Do(func() { k.last = lru.New(maxOutcomes) })
	return k.last
}

// get is the outcome for pods of that likeness, nil when none is remembered. It is shared: only read it.
func (k *patchCache) get(of cacheKey) *outcome {
	found, _ := k.cache().Get(of)
	o, _ := found.(*outcome)
	return o
}

// add remembers an outcome, as its result, which it returns: the patch itself stands in memory that is used again. Nil: it is too long.
func (k *patchCache) add(of cacheKey, o *outcome) []byte {
	result := review.AppendResult(nil, o.patch, o.warnings)
	if len(result) > maxResult {
		return nil
	}
	k.cache().Add(of, &outcome{answer: answer{result: result}, counters: o.counters, need: o.need})
	return result
}

func sizeOf(annotations map[string]string) (size int) {
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// likeness of a pod; ok is false where an outcome depends on more, so that it is never remembered.
func (h *PodInjector) likeness(s podRequest, ruling govern.Resolution, rec *v1alpha1.MemoryRecommendation, room around) (like cacheKey, dryRun, ok bool) {
	governs := ruling.Profile
	if room.depends() {
		return cacheKey{}, false, false
	}
	template, dryRun, ok := s.template()
	if !ok || governs.UID == "" || h.ConfigMaps != nil && bytes.Contains(template, []byte("configMapRef")) { // its keys may change
		return cacheKey{}, false, false
	}
	like = cacheKey{profile: governs.UID, generation: governs.Generation, template: sha256.Sum256(template)}
	if rec != nil {
		like.recommendation, like.version, like.paused = rec.UID, rec.ResourceVersion, ruling.Paused != ""
	}
	like.limitRanges, like.largestNode = room.limitRanges(), room.largestNode
	return like, dryRun, true
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
