// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbox maps pods to workloads, and keeps the events of each workload until its reconcile has processed them.
package inbox

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workload"
)

// Inbox maps pods to workloads, and keeps their events. The pod informer writes to it, so that no method may block, and
// all data is bounded. Safe for concurrent use.
type Inbox struct {
	mu        sync.Mutex
	pods      map[types.UID]*member
	workloads map[memory.WorkloadRef]*workloadEntry
	// classes are the entries of classes of nodes, by their whole workload.
	classes map[memory.WorkloadRef][]*workloadEntry
}

// member is a pod. There is one for each pod of the cluster, so it repeats no data of its workload.
type member struct {
	name     string // of the pod; the workload has the namespace
	workload *workloadEntry
	// owner is the UID of the workload, which distinguishes it from an earlier one of the same name; empty: unknown.
	owner types.UID
	// controller and profile are as in [policy.Kept]; profile is zero without a profile.
	controller types.UID
	profile    unique.Handle[profile.Key]
	// resolved is true if owner, controller and profile are from a complete resolution of the pod.
	resolved bool
	at       int32 // index among the workload's pods
	// Placement is set by the workload's reconcile, for the usage collector; empty: the pod has no profile or no node.
	Placement
}

// Placement is the node of a governed pod, and its containers: the node may report only these.
type Placement struct {
	Node       string
	Containers []string
}

type workloadEntry struct {
	ref  memory.WorkloadRef
	pods []*member
	// handed are events given to a reconcile and not acknowledged yet; newer came later.
	handed, newer workload.PendingEvents
	profile       profile.Key // at the last step; empty: none, or no step
	// released is true if the last reconcile found no profile for any pod, for this reason, and nothing is stored.
	released bool
	answer   Answer
}

// Answer is the reason why no profile governs a pod.
type Answer struct {
	Problem profile.Problem
	Why     string
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox {
	return &Inbox{
		pods: map[types.UID]*member{}, workloads: map[memory.WorkloadRef]*workloadEntry{},
		classes: map[memory.WorkloadRef][]*workloadEntry{},
	}
}

// Kept returns the last complete resolution of a pod; its Workload is empty if there was none.
func (r *Inbox) Kept(uid types.UID) policy.Kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	if !found || !m.resolved {
		return policy.Kept{}
	}
	k := policy.Kept{Workload: m.workload.ref, Owner: m.owner, Controller: m.controller}
	if m.profile != (unique.Handle[profile.Key]{}) {
		k.Profile = m.profile.Value()
	}
	return k
}

// Keep stores the resolution of a pod, which belongs to that workload from now on.
func (r *Inbox) Keep(uid types.UID, key types.NamespacedName, k policy.Kept) {
	r.AddPod(uid, key, k.Workload)
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	if !found || m.workload.ref != k.Workload {
		return
	}
	m.resolved, m.controller, m.owner = true, k.Controller, cmp.Or(k.Owner, m.owner)
	m.profile = unique.Handle[profile.Key]{}
	if k.Profile != (profile.Key{}) {
		m.profile = unique.Make(k.Profile)
	}
}

// Owner returns the UID of a workload from its pods; empty: unknown.
func (r *Inbox) Owner(ref memory.WorkloadRef) (uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, found := r.workloads[ref]; found {
		for _, m := range h.pods {
			uid = cmp.Or(uid, m.owner)
		}
	}
	return uid
}

// Workload returns the workload of a pod, even if the owner was deleted first.
func (r *Inbox) Workload(uid types.UID) (memory.WorkloadRef, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	if !found {
		return memory.WorkloadRef{}, false
	}
	return m.workload.ref, true
}

// Pod returns the name of a pod that belongs to a workload.
func (r *Inbox) Pod(uid types.UID) (types.NamespacedName, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	if !found {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: m.workload.ref.Namespace, Name: m.name}, true
}

// AddPod records that a pod belongs to a workload of its namespace. A pod whose owner becomes known late is moved, with
// its observations.
func (r *Inbox) AddPod(uid types.UID, key types.NamespacedName, ref memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	switch {
	case !found:
		m = &member{}
		r.pods[uid] = m
	case m.workload.ref == ref:
		return
	default:
		r.leave(m)
		m.owner, m.resolved = "", false
	}
	m.name, m.workload = key.Name, r.entry(ref)
	m.at = int32(len(m.workload.pods)) //nolint:gosec // pods of one workload
	m.workload.pods = append(m.workload.pods, m)
}

// Observe adds observations for a workload, and drops those equal to the last of their container.
func (r *Inbox) Observe(ref memory.WorkloadRef, observations []oom.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := &r.entry(ref).newer
	for i := range observations {
		events.AddObservation(&observations[i])
	}
}

// RemovePod records the last observations of a pod with its profile, and removes the pod. Its events remain. owner is
// the UID of its workload, if the inbox does not know it.
func (r *Inbox) RemovePod(
	ref memory.WorkloadRef, owner types.UID, pod *corev1.Pod, observations []oom.Observation,
	governedBy *profile.Profile,
) {
	r.Observe(ref, observations)
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[pod.UID]
	if found {
		owner = cmp.Or(m.owner, owner)
	}
	events := &r.entry(ref).newer
	if len(observations) > 0 {
		events.AddDeparted(workload.Departure{Pod: pod.UID, Owner: owner})
	}
	if governedBy != nil {
		events.Profile, events.Last = governedBy, pod
	}
	if !found {
		r.tidy(ref)
		return
	}
	delete(r.pods, pod.UID)
	r.leave(m)
}

// Request requests an unconditional step of a workload.
func (r *Inbox) Request(ref memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, found := r.workloads[ref]; found {
		h.newer.Requested = true
	}
}

// Sampled adds samples of one node to the events of the workloads their pods belong to, and returns those workloads. A
// node may report on its own pods only, and once for each container.
func (r *Inbox) Sampled(node string, samples []memory.Sample, source string) map[memory.WorkloadRef]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	sampled := make(map[sampledContainer]struct{}, min(len(samples), 256)) // a node may send anything
	touched := map[memory.WorkloadRef]struct{}{}
	var last *workloadEntry // consecutive samples are often of one workload
	for i := range samples {
		m, found := r.pods[samples[i].Container.UID]
		if !found {
			continue
		}
		of := sampledContainer{m, m.on(node, &samples[i].Container)}
		if _, again := sampled[of]; again || of.container < 0 {
			continue
		}
		sampled[of] = struct{}{}
		events := &m.workload.newer
		if events.Samples == nil {
			events.Samples = make([]memory.Sample, 0, min(len(m.workload.pods), workload.MaxSamples))
		}
		events.AddSamples(samples[i])
		events.Source = source
		if m.workload != last {
			last = m.workload
			touched[last.ref] = struct{}{}
		}
	}
	return touched
}

// sampledContainer is a container by its index in its pod.
type sampledContainer struct {
	pod       *member
	container int
}

// on returns the index of a container in the pod, if the node may report it: the pod is governed, runs on that node,
// and has that name and container; otherwise -1. A node must not invent names, because each takes 1.5 KiB.
func (m *member) on(node string, c *memory.ContainerRef) int {
	if m.Node == "" || m.Node != node || m.name != c.Pod || m.workload.ref.Namespace != c.Namespace {
		return -1
	}
	return slices.Index(m.Containers, c.Container)
}

// Counted adds kill counters of one node, and returns the workloads with a kill.
func (r *Inbox) Counted(node string, counters []memory.KillCounter) map[memory.WorkloadRef]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := map[memory.WorkloadRef]struct{}{}
	for _, c := range counters {
		m, found := r.pods[c.Container.UID]
		if !found || m.on(node, &c.Container) < 0 {
			continue
		}
		events := &m.workload.newer
		if events.Counters == nil {
			events.Counters = make([]memory.KillCounter, 0, min(len(m.workload.pods), workload.MaxSamples))
		}
		events.AddCounters(c)
		if c.Count > 0 {
			touched[m.workload.ref] = struct{}{}
		}
	}
	return touched
}

// Pending returns the unacknowledged events of a workload in order, and the names of its pods. Events remain until
// [Inbox.Done], so that a failed reconcile is retried with them and with newer ones.
func (r *Inbox) Pending(ref memory.WorkloadRef) (workload.PendingEvents, []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, found := r.workloads[ref]
	if !found {
		return workload.PendingEvents{}, nil
	}
	if h.handed.Empty() && len(h.handed.Departed) == 0 && h.handed.Profile == nil && !h.handed.Requested {
		h.handed = h.newer
	} else {
		h.handed.Append(&h.newer)
	}
	h.newer = workload.PendingEvents{}
	keys := make([]types.NamespacedName, 0, len(h.pods))
	for _, m := range h.pods {
		keys = append(keys, types.NamespacedName{Namespace: ref.Namespace, Name: m.name})
	}
	return h.handed.Clone(), keys
}

// Done removes the events that [Inbox.Pending] returned last.
func (r *Inbox) Done(ref memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, found := r.workloads[ref]; found {
		h.handed = workload.PendingEvents{}
		r.tidy(ref)
	}
}

// Govern records the governed pods of a workload and their nodes; all others are not governed.
func (r *Inbox) Govern(ref memory.WorkloadRef, placed map[types.UID]Placement, by profile.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, found := r.workloads[ref]
	if !found {
		return
	}
	h.profile, h.released = by, false
	for _, m := range h.pods {
		m.Placement = Placement{}
	}
	for uid, place := range placed {
		if m, found := r.pods[uid]; found && m.workload == h {
			m.Placement = place
		}
	}
}

// Release records that no profile governs any pod of a workload, for that reason, and that nothing is stored of it.
// Until it is governed, an event of a pod with the same reason causes no reconcile.
func (r *Inbox) Release(ref memory.WorkloadRef, answer Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, found := r.workloads[ref]; found {
		h.released, h.answer = true, answer
	}
}

// Released reports whether a workload was released with that answer.
func (r *Inbox) Released(ref memory.WorkloadRef, answer Answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, found := r.workloads[ref]
	return found && h.released && h.answer == answer
}

// GovernedNodes returns the nodes of governed pods, with their pod counts.
func (r *Inbox) GovernedNodes() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := map[string]int{}
	for _, m := range r.pods {
		if m.Node != "" {
			nodes[m.Node]++
		}
	}
	return nodes
}

// Workloads returns all workloads with pods or events.
func (r *Inbox) Workloads() []memory.WorkloadRef {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.workloads))
}

// NodeClasses returns a workload's classes of nodes; none for a class itself.
func (r *Inbox) NodeClasses(of memory.WorkloadRef) (all []memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.classes[of] {
		all = append(all, h.ref)
	}
	return all
}

// NodesOfOthers counts the nodes that have a governed pod of the same owner, but of another class of nodes.
func (r *Inbox) NodesOfOthers(of memory.WorkloadRef) int {
	nodes := map[string]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	others := r.classes[of.Whole()]
	if whole, found := r.workloads[of.Whole()]; found {
		others = append(slices.Clip(others), whole)
	}
	for _, h := range others {
		for _, m := range h.pods {
			if h.ref != of && m.Node != "" {
				nodes[m.Node] = true
			}
		}
	}
	return len(nodes)
}

// Concerned returns the workloads that changes of profiles can concern: those with a changed profile and, if its
// selection changed, all that it could select, within its namespace or the cluster.
func (r *Inbox) Concerned(changes []policy.Change) []memory.WorkloadRef {
	edited, choosing := map[profile.Key]bool{}, map[string]bool{}
	for _, c := range changes {
		edited[c.Key] = true
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
		h = &workloadEntry{ref: w}
		r.workloads[w] = h
		if whole := w.Whole(); whole != w {
			r.classes[whole] = append(r.classes[whole], h)
		}
	}
	return h
}

func (r *Inbox) leave(m *member) {
	h := m.workload
	last := h.pods[len(h.pods)-1]
	h.pods[m.at], last.at = last, m.at
	h.pods[len(h.pods)-1] = nil
	h.pods = h.pods[:len(h.pods)-1]
	r.tidy(h.ref)
}

// tidy drops an entry that has neither pods nor events.
func (r *Inbox) tidy(w memory.WorkloadRef) {
	h, whole := r.workloads[w], w.Whole()
	if len(h.pods) > 0 || !h.handed.Empty() || !h.newer.Empty() {
		return
	}
	delete(r.workloads, w)
	r.classes[whole] = slices.DeleteFunc(r.classes[whole], func(of *workloadEntry) bool { return of == h })
	if len(r.classes[whole]) == 0 {
		delete(r.classes, whole)
	}
}
