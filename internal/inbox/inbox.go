// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbox maps pods to workloads, and queues the events of each workload until its reconcile has processed them.
// Informers and the usage collector write to it; the workload controller reads it.
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

// Inbox maps pods to workloads and queues events by workload. The pod informer writes to it, so no method blocks, and
// all data is bounded. Safe for concurrent use.
type Inbox struct {
	mu        sync.Mutex
	pods      map[types.UID]*member
	workloads map[memory.WorkloadRef]*workloadEntry
	// classes has the entries with a NodeClass, by their whole workload.
	classes map[memory.WorkloadRef][]*workloadEntry
}

// member is a pod of a workload. Every pod of the cluster has one, so it repeats no data of its workload.
type member struct {
	name     string // of the pod; the workload has the namespace
	workload *workloadEntry
	// owner is the UID of the workload, which distinguishes it from an earlier workload of its name; empty: unknown.
	owner types.UID
	// controller and profile are as in [policy.Remembered]; profile is zero without a profile.
	controller types.UID
	profile    unique.Handle[profile.Key]
	// resolved is true if owner, controller and profile are from a complete resolution of the pod.
	resolved bool
	at       int32 // index in workload.pods
	// Placement is set by the workload's reconcile, for the usage collector; empty: the pod has no profile or no node.
	Placement
}

// Placement is the node of a governed pod, and the containers that the node may report.
type Placement struct {
	Node       string
	Containers []string
}

type workloadEntry struct {
	ref  memory.WorkloadRef
	pods []*member
	// inFlight are the events that a reconcile is processing; queued arrived later.
	inFlight, queued workload.PendingEvents
	profile          profile.Key // at the last reconcile; empty: no profile, or no reconcile yet
	// released is true if no profile governed any pod at the last reconcile, and nothing is stored.
	released bool
	answer   NoProfile // why no profile did
}

// NoProfile is the reason why no profile governs a pod.
type NoProfile struct {
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
func (r *Inbox) Kept(uid types.UID) policy.Remembered {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, found := r.pods[uid]
	if !found || !m.resolved {
		return policy.Remembered{}
	}
	k := policy.Remembered{Workload: m.workload.ref, Owner: m.owner, Controller: m.controller}
	if m.profile != (unique.Handle[profile.Key]{}) {
		k.Profile = m.profile.Value()
	}
	return k
}

// Keep stores the resolution of a pod, and moves the pod to the workload of the resolution.
func (r *Inbox) Keep(uid types.UID, key types.NamespacedName, k policy.Remembered) {
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

// Owner returns the UID of a workload, as recorded for its pods; empty: unknown.
func (r *Inbox) Owner(ref memory.WorkloadRef) (uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, found := r.workloads[ref]; found {
		for _, m := range e.pods {
			uid = cmp.Or(uid, m.owner)
		}
	}
	return uid
}

// Workload returns the workload of a pod, even if the workload was deleted before the pod.
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

// AddPod records that a pod belongs to a workload of its namespace. It moves a pod that belonged to another workload
// because its owner was unknown.
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

// Observe queues observations for a workload. It drops an observation that equals the last one of its container.
func (r *Inbox) Observe(ref memory.WorkloadRef, observations []oom.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := &r.entry(ref).queued
	for i := range observations {
		events.AddObservation(&observations[i])
	}
}

// RemovePod queues the last observations of a pod and the profile that governed it, and removes the pod. Its events
// remain. owner is the UID of its workload; the inbox uses it if it has not recorded one.
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
	events := &r.entry(ref).queued
	if len(observations) > 0 {
		events.AddDeparted(workload.Departure{Pod: pod.UID, Owner: owner})
	}
	if governedBy != nil {
		events.Profile, events.Last = governedBy, pod
	}
	if !found {
		r.dropIfEmpty(ref)
		return
	}
	delete(r.pods, pod.UID)
	r.leave(m)
}

// Request requests a reconcile of a workload that runs even without new events.
func (r *Inbox) Request(ref memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, found := r.workloads[ref]; found {
		e.queued.Requested = true
	}
}

// Sampled queues samples of one node, and returns the workloads of their pods. It drops samples of pods on other nodes,
// and all but the first sample of a container.
func (r *Inbox) Sampled(node string, samples []memory.Sample, source string) map[memory.WorkloadRef]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	sampled := make(map[sampledContainer]struct{}, min(len(samples), 256)) // bounded: a node may send any number
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
		events := &m.workload.queued
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

// sampledContainer identifies a container by its index in its pod.
type sampledContainer struct {
	pod       *member
	container int
}

// on returns the index of container c in the pod, if the node may report it: the pod is governed, runs on the node, and
// has the name and container of c; otherwise -1. So a node cannot invent names, each of which would take 1.5 KiB.
func (m *member) on(node string, c *memory.ContainerRef) int {
	if m.Node == "" || m.Node != node || m.name != c.Pod || m.workload.ref.Namespace != c.Namespace {
		return -1
	}
	return slices.Index(m.Containers, c.Container)
}

// Counted queues kill counters of one node, and returns the workloads with a kill. It drops counters of other nodes.
func (r *Inbox) Counted(node string, counters []memory.KillCounter) map[memory.WorkloadRef]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := map[memory.WorkloadRef]struct{}{}
	for _, c := range counters {
		m, found := r.pods[c.Container.UID]
		if !found || m.on(node, &c.Container) < 0 {
			continue
		}
		events := &m.workload.queued
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

// Pending returns the unprocessed events of a workload in order, and the names of its pods. Events remain until
// [Inbox.Done]: after a failed reconcile, the next one gets them again, with later events.
func (r *Inbox) Pending(ref memory.WorkloadRef) (workload.PendingEvents, []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, found := r.workloads[ref]
	if !found {
		return workload.PendingEvents{}, nil
	}
	if e.inFlight.Empty() && len(e.inFlight.Departed) == 0 && e.inFlight.Profile == nil && !e.inFlight.Requested {
		e.inFlight = e.queued
	} else {
		e.inFlight.Append(&e.queued)
	}
	e.queued = workload.PendingEvents{}
	keys := make([]types.NamespacedName, 0, len(e.pods))
	for _, m := range e.pods {
		keys = append(keys, types.NamespacedName{Namespace: ref.Namespace, Name: m.name})
	}
	return e.inFlight.Clone(), keys
}

// Done removes the events that [Inbox.Pending] returned last.
func (r *Inbox) Done(ref memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, found := r.workloads[ref]; found {
		e.inFlight = workload.PendingEvents{}
		r.dropIfEmpty(ref)
	}
}

// Govern records the profile of a workload, and the placements of its governed pods. It clears those of other pods.
func (r *Inbox) Govern(ref memory.WorkloadRef, placed map[types.UID]Placement, by profile.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, found := r.workloads[ref]
	if !found {
		return
	}
	e.profile, e.released = by, false
	for _, m := range e.pods {
		m.Placement = Placement{}
	}
	for uid, place := range placed {
		if m, found := r.pods[uid]; found && m.workload == e {
			m.Placement = place
		}
	}
}

// Release records that no profile governs any pod of a workload and why, and that nothing is stored for the workload.
// Until [Inbox.Govern], an event of a pod with the same reason causes no reconcile.
func (r *Inbox) Release(ref memory.WorkloadRef, answer NoProfile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, found := r.workloads[ref]; found {
		e.released, e.answer = true, answer
	}
}

// Released reports whether a workload was released with that answer.
func (r *Inbox) Released(ref memory.WorkloadRef, answer NoProfile) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, found := r.workloads[ref]
	return found && e.released && e.answer == answer
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

// NodeClasses returns the refs with a NodeClass of a whole workload; none for a ref that has one itself.
func (r *Inbox) NodeClasses(of memory.WorkloadRef) (all []memory.WorkloadRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.classes[of] {
		all = append(all, e.ref)
	}
	return all
}

// NodesOfOthers counts the nodes with a governed pod of the same owner in another NodeClass.
func (r *Inbox) NodesOfOthers(of memory.WorkloadRef) int {
	nodes := map[string]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	others := r.classes[of.Whole()]
	if whole, found := r.workloads[of.Whole()]; found {
		others = append(slices.Clip(others), whole)
	}
	for _, e := range others {
		for _, m := range e.pods {
			if e.ref != of && m.Node != "" {
				nodes[m.Node] = true
			}
		}
	}
	return len(nodes)
}

// Concerned returns the workloads that changes of profiles can affect: those that a changed profile governs and, if it
// may select others now, all workloads of its namespace (for a cluster profile, of the cluster).
func (r *Inbox) Concerned(changes []policy.Change) []memory.WorkloadRef {
	edited, selecting := map[profile.Key]bool{}, map[string]bool{}
	for _, c := range changes {
		edited[c.Key] = true
		if c.SelectionChanged {
			selecting[c.Namespace] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var refs []memory.WorkloadRef
	for ref, e := range r.workloads {
		if edited[e.profile] || selecting[ref.Namespace] || selecting[""] {
			refs = append(refs, ref)
		}
	}
	return refs
}

func (r *Inbox) entry(w memory.WorkloadRef) *workloadEntry {
	e, found := r.workloads[w]
	if !found {
		e = &workloadEntry{ref: w}
		r.workloads[w] = e
		if whole := w.Whole(); whole != w {
			r.classes[whole] = append(r.classes[whole], e)
		}
	}
	return e
}

func (r *Inbox) leave(m *member) {
	e := m.workload
	last := e.pods[len(e.pods)-1]
	e.pods[m.at], last.at = last, m.at
	e.pods[len(e.pods)-1] = nil
	e.pods = e.pods[:len(e.pods)-1]
	r.dropIfEmpty(e.ref)
}

// dropIfEmpty deletes the entry of a workload without pods and events.
func (r *Inbox) dropIfEmpty(w memory.WorkloadRef) {
	e, whole := r.workloads[w], w.Whole()
	if len(e.pods) > 0 || !e.inFlight.Empty() || !e.queued.Empty() {
		return
	}
	delete(r.workloads, w)
	r.classes[whole] = slices.DeleteFunc(r.classes[whole], func(of *workloadEntry) bool { return of == e })
	if len(r.classes[whole]) == 0 {
		delete(r.classes, whole)
	}
}
