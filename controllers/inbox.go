// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/signals"
)

const (
	// maxObservations bounds a container's unread observations. Restart counts make up for what is dropped: the newest observation
	// carries the sum, and only the details of kills in between are lost.
	maxObservations = 8
	// maxSamples bounds a workload's unread samples: 1000 replicas for a minute, or a small workload for hours.
	maxSamples = 4096
)

// Inbox knows which pods belong to which workload, and keeps a mailbox for each workload. It is what the pod informer writes to,
// so nothing in it blocks or grows without bound. Safe for concurrent use.
type Inbox struct {
	mu        sync.Mutex
	pods      map[types.UID]member
	workloads map[memory.WorkloadRef]*workloadEntry
}

type member struct {
	key      types.NamespacedName
	workload memory.WorkloadRef
	// owner is the UID of the workload, which tells it from an earlier one of the same name; empty: not known.
	owner types.UID
	// governed and placement are set by the workload's reconcile; the usage collector reads them.
	governed bool
	placement
}

// placement is where a governed pod runs, and which containers it was given: a node speaks for these and for no others.
type placement struct {
	node       string
	containers []string
}

type workloadEntry struct {
	pods map[types.UID]struct{}
	// handed are events that a reconcile has been given and has not acknowledged; mail came in since.
	handed, mail PendingEvents
	// profile governed the workload at its last look; empty: none did, or there was none.
	profile ProfileKey
}

// PendingEvents is what happened to a workload since the last look.
type PendingEvents struct {
	// Observations are in the order in which they were made.
	Observations []signals.Observation
	// Samples are in the order in which they were taken.
	Samples []memory.Sample
	// Source says where the samples came from.
	Source string
	// Counters are the kernel's counts of kills in containers that live.
	Counters []signals.Counter
	// Look: something else than samples came, or somebody asks for a look.
	Look bool
	// Departed are the UIDs of the workloads to which pods belonged that are gone since, by the pods'.
	Departed map[types.UID]types.UID
	// Profile governed Last, a pod that is gone already. They are used when no pod is left to look at; nil otherwise.
	Profile *profile.Named
	Last    *corev1.Pod
	// Past is what the workload used before memfit saw it; nil: nobody asked. It does not come through the Inbox.
	Past *past
}

// NewInbox is an empty inbox.
func NewInbox() *Inbox {
	return &Inbox{pods: map[types.UID]member{}, workloads: map[memory.WorkloadRef]*workloadEntry{}}
}

// Workload is the workload a pod was enrolled for. Owners may be deleted before their pods; the inbox still knows.
func (r *Inbox) Workload(uid types.UID) (memory.WorkloadRef, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	return m.workload, found
}

// AddPod says that a pod belongs to a workload. A pod whose owner became known late moves, with what was observed of it.
func (r *Inbox) AddPod(uid types.UID, key types.NamespacedName, workload memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.pods[uid]
	if m.workload == workload {
		return
	}
	if m.workload != (memory.WorkloadRef{}) {
		r.leave(uid, m.workload)
	}
	m.key, m.workload = key, workload
	r.pods[uid] = m
	r.entry(workload).pods[uid] = struct{}{}
}

// Owned says to which of the workloads that have had its workload's name a pod belongs.
func (r *Inbox) Owned(uid, owner types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, found := r.pods[uid]; found && owner != "" {
		m.owner = owner
		r.pods[uid] = m
	}
}

// Observe puts observations into a workload's mailbox. An observation equal to the last one of its container is dropped.
func (r *Inbox) Observe(workload memory.WorkloadRef, observations []signals.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mail := &r.entry(workload).mail
	for i := range observations {
		mail.observe(&observations[i])
	}
}

// RemovePod takes down the last that was seen of a pod, with the profile that governed it, and forgets the pod. Its mail stays. owner is the
// UID of its workload, for a pod of which the inbox does not know it.
func (r *Inbox) RemovePod(workload memory.WorkloadRef, owner types.UID, pod *corev1.Pod, observations []signals.Observation, governedBy *profile.Named) {
	r.Observe(workload, observations)
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[pod.UID]
	mail := &r.entry(workload).mail
	if len(observations) > 0 {
		if mail.Departed == nil {
			mail.Departed = map[types.UID]types.UID{}
		}
		mail.Departed[pod.UID] = cmp.Or(m.owner, owner)
	}
	if governedBy != nil {
		mail.Profile, mail.Last = governedBy, pod
	}
	if found {
		delete(r.pods, pod.UID)
		r.leave(pod.UID, m.workload)
	}
}

// Ask asks for a look at a workload, whatever mail it has.
func (r *Inbox) Ask(workload memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, found := r.workloads[workload]; found {
		h.mail.Look = true
	}
}

// Sampled puts samples of one node into the mailboxes of the workloads their pods belong to, and returns those workloads. A node speaks
// for its own pods only, and once for each container.
func (r *Inbox) Sampled(node string, samples []memory.Sample, source string) map[memory.WorkloadRef]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := map[memory.WorkloadRef]struct{}{}
	heard := make(map[memory.ContainerRef]struct{}, len(samples))
	for _, s := range samples {
		m, found := r.pods[s.Container.UID]
		if _, again := heard[s.Container]; again || !found || !m.on(node, s.Container) {
			continue
		}
		heard[s.Container] = struct{}{}
		mail := &r.entry(m.workload).mail
		mail.sample(s)
		mail.Source = source
		touched[m.workload] = struct{}{}
	}
	return touched
}

// on says whether a node may speak for a container of the pod: the pod is governed and bound to it, and has that name and that container. A
// name that is remembered takes 1.5 KiB, so a node must not invent any.
func (m *member) on(node string, c memory.ContainerRef) bool {
	return m.governed && m.node == node && m.key.Namespace == c.Namespace && m.key.Name == c.Pod && slices.Contains(m.containers, c.Container)
}

// Counted puts kill counters of one node into the mailboxes, and returns the workloads in which something was killed once.
func (r *Inbox) Counted(node string, counters []signals.Counter) map[memory.WorkloadRef]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := map[memory.WorkloadRef]struct{}{}
	for _, c := range counters {
		m, found := r.pods[c.Container.UID]
		if !found || !m.on(node, c.Container) {
			continue
		}
		r.entry(m.workload).mail.counted(c)
		if c.Count > 0 {
			touched[m.workload] = struct{}{}
		}
	}
	return touched
}

// Pending are the events of a workload that no reconcile has acknowledged, in the order in which they came, and the names of its pods.
// They stay until [Inbox.Done], so that whatever fails is tried again with them and with what came in meanwhile.
func (r *Inbox) Pending(workload memory.WorkloadRef) (PendingEvents, []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, found := r.workloads[workload]
	if !found {
		return PendingEvents{}, nil
	}
	h.handed.append(&h.mail)
	h.mail = PendingEvents{}
	keys := make([]types.NamespacedName, 0, len(h.pods))
	for uid := range h.pods {
		keys = append(keys, r.pods[uid].key)
	}
	return h.handed.clone(), keys
}

// Done forgets the events that [Inbox.Pending] returned last.
func (r *Inbox) Done(workload memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, found := r.workloads[workload]; found {
		h.handed = PendingEvents{}
		r.tidy(workload)
	}
}

// Govern records which pods of a workload are governed by a profile and where they run; all others are not.
func (r *Inbox) Govern(workload memory.WorkloadRef, placed map[types.UID]placement, by ProfileKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, found := r.workloads[workload]
	if !found {
		return
	}
	h.profile = by
	for uid := range h.pods {
		m := r.pods[uid]
		m.placement, m.governed = placed[uid], placed[uid].node != ""
		r.pods[uid] = m
	}
}

// GovernedNodes are the nodes on which governed pods run.
func (r *Inbox) GovernedNodes() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := map[string]int{}
	for _, m := range r.pods {
		if m.governed {
			nodes[m.node]++
		}
	}
	return nodes
}

// Workloads are all workloads that have pods or mail.
func (r *Inbox) Workloads() []memory.WorkloadRef {
	r.mu.Lock()
	defer r.mu.Unlock()
	refs := make([]memory.WorkloadRef, 0, len(r.workloads))
	for ref := range r.workloads {
		refs = append(refs, ref)
	}
	return refs
}

// Concerned are the workloads that changes of profiles can concern: those that a changed profile governs, and where one may choose others
// than before, or is new or gone, all that it could ever choose. A namespace's profile never concerns another namespace.
func (r *Inbox) Concerned(changes []govern.Change) []memory.WorkloadRef {
	edited, choosing := map[ProfileKey]bool{}, map[string]bool{}
	for _, c := range changes {
		edited[ProfileKey{Kind: c.Ref.Kind, Namespace: c.Namespace, Name: c.Ref.Name}] = true
		if c.Chooses {
			choosing[c.Namespace] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var refs []memory.WorkloadRef
	for ref, h := range r.workloads {
		if edited[h.profile] || choosing[ref.Namespace] || choosing[""] {
			refs = append(refs, ref)
		}
	}
	return refs
}

func (r *Inbox) entry(w memory.WorkloadRef) *workloadEntry {
	h, found := r.workloads[w]
	if !found {
		h = &workloadEntry{pods: map[types.UID]struct{}{}}
		r.workloads[w] = h
	}
	return h
}

func (r *Inbox) leave(uid types.UID, w memory.WorkloadRef) {
	if h, found := r.workloads[w]; found {
		delete(h.pods, uid)
		r.tidy(w)
	}
}

// tidy drops an entry that has neither pods nor events.
func (r *Inbox) tidy(w memory.WorkloadRef) {
	if h := r.workloads[w]; len(h.pods) == 0 && h.handed.empty() && h.mail.empty() {
		delete(r.workloads, w)
	}
}

// empty: nothing happened. That somebody asks for a look is nothing that must not be lost.
func (m *PendingEvents) empty() bool { return len(m.Observations)+len(m.Samples)+len(m.Counters) == 0 }

// append adds what came in later.
func (m *PendingEvents) append(newer *PendingEvents) {
	for i := range newer.Observations {
		m.observe(&newer.Observations[i])
	}
	m.sample(newer.Samples...)
	m.counted(newer.Counters...)
	m.Look = m.Look || newer.Look
	m.Source = cmp.Or(newer.Source, m.Source)
	for pod, owner := range newer.Departed {
		if m.Departed == nil {
			m.Departed = map[types.UID]types.UID{}
		}
		m.Departed[pod] = owner
	}
	if newer.Profile != nil {
		m.Profile, m.Last = newer.Profile, newer.Last
	}
}

// clone shares no list: whoever gets it may drop what is not of his workload.
func (m *PendingEvents) clone() PendingEvents {
	c := *m
	c.Observations, c.Samples, c.Counters, c.Departed = slices.Clone(m.Observations), slices.Clone(m.Samples), slices.Clone(m.Counters), maps.Clone(m.Departed)
	return c
}

// observe appends o unless it repeats the last observation of its container, and keeps at most maxObservations of each.
func (m *PendingEvents) observe(o *signals.Observation) {
	count, first, last := 0, -1, -1
	for i := range m.Observations {
		if m.Observations[i].Container == o.Container {
			if first < 0 {
				first = i
			}
			count, last = count+1, i
		}
	}
	if last >= 0 && sameObservation(&m.Observations[last], o) {
		return
	}
	if count >= maxObservations {
		// Keep the first look, which may be the only one that still shows the oldest kill, and drop the one after it.
		for i := first + 1; i < len(m.Observations); i++ {
			if m.Observations[i].Container == o.Container {
				m.Observations = append(m.Observations[:i], m.Observations[i+1:]...)
				break
			}
		}
	}
	m.Observations = append(m.Observations, *o)
}

// sample appends samples; when nobody collects them, the oldest go first.
func (m *PendingEvents) sample(samples ...memory.Sample) {
	m.Samples = append(m.Samples, samples...)
	if over := len(m.Samples) - maxSamples; over > 0 {
		m.Samples = append(m.Samples[:0], m.Samples[over+maxSamples/4:]...)
	}
}

// counted appends counters; when nobody collects them, the oldest go first: the newest carry the sum.
func (m *PendingEvents) counted(counters ...signals.Counter) {
	m.Counters = append(m.Counters, counters...)
	if over := len(m.Counters) - maxSamples; over > 0 {
		m.Counters = append(m.Counters[:0], m.Counters[over+maxSamples/4:]...)
	}
}
