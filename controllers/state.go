// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/apply"
	"github.com/memfit/memfit/internal/drift"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/signals"
)

// checkpointVersion is the version of what a MemoryCheckpoint holds. Containers and ledger carry versions of their own. 2: the ledger
// is packed.
const checkpointVersion = 2

// maxCheckpoint bounds what a MemoryCheckpoint takes in etcd, in bytes of JSON. etcd refuses requests above 1.5 MiB for ever, and other
// stores behind the API server (kine on MySQL) above 1 MiB. The ledger bounds itself so that it fits with all histories; see packHistories.
const maxCheckpoint = 1 << 20

// state is what memfit knows of one workload between two reconciles: at most 1.5 KiB per container name, plus the ledger.
// [step] makes the next one of it. The MemoryCheckpoint is its copy on the API server: always current for what was counted
// and begun, and at most CheckpointEvery old for the rest.
type state struct {
	// steppedAt is the time of the last step; zero: there was none since memfit started.
	steppedAt time.Time
	// measuredSince is the first step of this memfit, from where on its pods are measured; zero: they are not.
	measuredSince time.Time

	ledger     signals.Ledger
	containers map[string]*history.Container
	// instances are the running containers, to know the highest use of one before it was killed. Not checkpointed: after a restart
	// of memfit, a kill's peak is what was seen since.
	instances map[memory.ContainerRef]*instance
	// profile governed the workload at the last step, and template was its newest pod.
	profile  *profile.Named
	template *corev1.Pod
	// source says where samples come from.
	source string
	backfill
	// restarts are those for drift.action: Restart, and restartRefused until when and why the API server refused one.
	restarts       drift.State
	restartRefused refusal
	// rollout is what was begun to do to running pods.
	rollout apply.State
	told    told
	// shapes are the shapes of memory found last, by container.
	shapes map[string]shapeCache
	// standing are the sizes published last, by container: they stand while evidence is missing.
	standing map[string]v1alpha1.Size
	// used is what the recommendation said of use before a restart of memfit, by container: it stands until somebody reads again.
	used map[string]v1alpha1.ContainerRecommendation
	// liveSets are the most that was alive in replicas without a heap cap, by container, as published last.
	liveSets map[string]history.LiveSet
	// countsFaults: the source of usage counts major page faults.
	countsFaults bool
}

// told is what events said last, so that nothing is said twice.
type told struct {
	// drifting is the reason of DriftDetected while it is true, and sick are the pods that stand out.
	drifting string
	sick     []string
	// outOfDate is the number of pods that ran without what the profile would set.
	outOfDate int32
	// conflicted: another autoscaler steers this memory.
	conflicted bool
	// ledgerFull: kills are not counted any more.
	ledgerFull bool
}

// instance is one running container.
type instance struct {
	restarts int32
	started  time.Time
	peak     memory.Bytes
	limit    memory.Bytes
	seen     time.Time
	// alive is when it was last seen to run, by memfit's clock.
	alive time.Time
	// recent are the last readings, to know what the instance uses now.
	recent readings
	// lows are what it came down to between collections, under the heap cap that its environment says; 0: none. capKnown: somebody looked.
	lows     history.Lows
	heapCap  memory.Bytes
	capKnown bool
	// stalls looks for times in which it stood still at its limit. stallsKnown: what the ledger knows of one that goes on was taken over.
	stalls      signals.StallWatch
	stallsKnown bool
}

func newState() *state {
	return &state{
		containers: map[string]*history.Container{}, instances: map[memory.ContainerRef]*instance{}, standing: map[string]v1alpha1.Size{},
	}
}

// clone is a copy that shares nothing that a step changes in place.
func (m *state) clone() *state {
	c := *m
	c.ledger = m.ledger.Clone()
	c.containers = make(map[string]*history.Container, len(m.containers))
	for name, h := range m.containers {
		of := *h
		c.containers[name] = &of
	}
	c.instances = make(map[memory.ContainerRef]*instance, len(m.instances))
	all := make([]instance, 0, len(m.instances)) // in one piece: an allocation each would be most of the time
	for ref, in := range m.instances {
		all = append(all, *in)
		of := &all[len(all)-1]
		of.stalls = in.stalls.Clone()
		c.instances[ref] = of
	}
	c.backfill.since = slices.Clone(m.backfill.since)
	return &c
}

// history of a container name, made when first needed.
func (m *state) history(container string) *history.Container {
	h, found := m.containers[container]
	if !found {
		h = history.New()
		m.containers[container] = h
	}
	return h
}

// settle takes in ends of instances and limits. It comes after the ledger is safe: it forgets the peaks of instances that ended.
func (m *state) settle(observations []signals.Observation, now time.Time) {
	for i := range observations {
		o := &observations[i]
		in, found := m.instances[o.Container]
		if !found {
			in = &instance{restarts: o.Restarts}
			m.instances[o.Container] = in
		}
		in.limit, in.seen = o.Limit, now
		if o.Restarts > in.restarts {
			in.restarts, in.peak, in.recent, in.lows = o.Restarts, 0, readings{}, history.Lows{}
			m.history(o.Container.Container).Restarted(o.Container, endOf(o, now))
		}
		if !o.Running.IsZero() {
			in.alive = now
		}
	}
}

func endOf(o *signals.Observation, now time.Time) time.Time {
	if n := len(o.Ended); n > 0 && !o.Ended[n-1].Finished.IsZero() {
		if at := o.Ended[n-1].Finished; at.Before(now) {
			return at
		}
	}
	return now
}

// measure takes in samples.
func (m *state) measure(samples []memory.Sample, now time.Time) {
	for _, s := range samples {
		in, found := m.instances[s.Container]
		if !found {
			in = &instance{}
			m.instances[s.Container] = in
		}
		in.seen = now
		if s.Started.After(in.started) {
			in.started, in.peak, in.recent, in.lows = s.Started, 0, readings{}, history.Lows{} // a new process; its predecessor's end arrives through the pod
		}
		in.peak = max(in.peak, s.RSS)
		in.recent.add(s)
		in.lows.Add(s, in.started)
		m.history(s.Container.Container).Add(s, in.limit)
	}
	m.backfill.note(samples)
}

// peak is the highest RSS seen in the instance of a container that runs or has just ended.
func (m *state) peak(c memory.ContainerRef) memory.Bytes {
	if in, found := m.instances[c]; found {
		return in.peak
	}
	return 0
}

// instanceKept is how long a container that is not seen any more is remembered, so that a late event still finds its peak.
const instanceKept = time.Hour

// forgetGone drops what belongs to pods that are gone.
func (m *state) forgetGone(live map[types.UID]bool, now time.Time) {
	m.ledger.Forget(live, now)
	maps.DeleteFunc(m.instances, func(c memory.ContainerRef, in *instance) bool {
		return !live[c.UID] && now.Sub(in.seen) > instanceKept
	})
}

// forgetNames drops the histories of containers that no governed pod has any more, once there are more than a checkpoint holds: names of
// older versions of the workload would otherwise take the room of those that run, and memory for ever.
func (m *state) forgetNames(governed []*corev1.Pod) {
	if len(m.containers) <= maxContainers {
		return
	}
	present := map[string]bool{}
	for _, pod := range governed {
		for _, name := range containersOf(&pod.Spec) {
			present[name] = true
		}
	}
	maps.DeleteFunc(m.containers, func(name string, _ *history.Container) bool { return !present[name] })
}

// pack is what the checkpoint should hold, without histories.
func (m *state) pack() (v1alpha1.MemoryCheckpointStatus, error) {
	status := v1alpha1.MemoryCheckpointStatus{Version: checkpointVersion}
	var err error
	if status.Ledger, err = m.ledger.MarshalBinary(); err != nil {
		return status, fmt.Errorf("encoding the ledger: %w", err)
	}
	if status.Drift, err = packed("the restarts", &m.restarts); err != nil {
		return status, err
	}
	status.Sizing, err = packed("the state of resizes", &m.rollout)
	return status, err
}

// packHistories adds the histories of containers as far as the checkpoint has room for them, in the order of their names. They come
// last because they are the only part that can be had again: usage is measured anew. What was counted and what was begun cannot.
func (m *state) packHistories(status *v1alpha1.MemoryCheckpointStatus) error {
	room := maxCheckpoint - envelope - base64.StdEncoding.EncodedLen(len(status.Ledger)) -
		base64.StdEncoding.EncodedLen(len(status.Drift)) - base64.StdEncoding.EncodedLen(len(status.Sizing))
	for _, name := range slices.Sorted(maps.Keys(m.containers)) {
		data, err := m.containers[name].MarshalBinary()
		if err != nil {
			return fmt.Errorf("encoding the history of container %s: %w", name, err)
		}
		room -= base64.StdEncoding.EncodedLen(len(data)) + len(name) + 32 // {"history":"","name":""},
		if len(status.Containers) == maxContainers || room < 0 {
			break
		}
		status.Containers = append(status.Containers, v1alpha1.CheckpointContainer{Name: name, History: data})
	}
	return nil
}

// envelope is what metadata and the names of fields take: a name, a namespace and an owner of at most 253 bytes each, and managed fields.
const envelope = 4 << 10

// packed is what is to be remembered, encoded; empty when there is nothing.
func packed(what string, state json.Marshaler) ([]byte, error) {
	data, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", what, err)
	}
	if string(data) == "null" {
		return nil, nil
	}
	return data, nil
}

// maxContainers is what the API allows in one checkpoint and one recommendation.
const maxContainers = 32

// unpack replaces ledger and history by what a checkpoint holds. A history that cannot be read is begun afresh and said in lost:
// usage is measured again, while a workload that is not looked at until somebody deletes its checkpoint would help nobody. A ledger
// that cannot be read is an error, because kills cannot be counted again.
func (m *state) unpack(c *v1alpha1.MemoryCheckpoint) (lost []error, err error) {
	if c.Status.Version > checkpointVersion {
		return nil, fmt.Errorf("MemoryCheckpoint %s/%s was written by a newer memfit (version %d, this one knows %d): it is left alone; upgrade memfit, or delete it to start afresh",
			c.Namespace, c.Name, c.Status.Version, checkpointVersion)
	}
	var ledger signals.Ledger
	if len(c.Status.Ledger) > 0 {
		if err := ledger.UnmarshalBinary(c.Status.Ledger); err != nil {
			return nil, fmt.Errorf("decoding the ledger of MemoryCheckpoint %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	containers := map[string]*history.Container{}
	for _, packed := range c.Status.Containers {
		h := history.New()
		if err := h.UnmarshalBinary(packed.History); err != nil {
			lost = append(lost, fmt.Errorf("decoding the history of container %s in MemoryCheckpoint %s/%s: %w", packed.Name, c.Namespace, c.Name, err))
			h = history.New()
		}
		containers[packed.Name] = h
	}
	var restarts drift.State
	if len(c.Status.Drift) > 0 {
		if err := json.Unmarshal(c.Status.Drift, &restarts); err != nil {
			return nil, fmt.Errorf("decoding the restarts in MemoryCheckpoint %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	var sizing apply.State
	if len(c.Status.Sizing) > 0 {
		if err := json.Unmarshal(c.Status.Sizing, &sizing); err != nil {
			return nil, fmt.Errorf("decoding the state of resizes in MemoryCheckpoint %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	m.ledger, m.containers, m.restarts, m.rollout = ledger, containers, restarts, sizing
	return lost, nil
}

// recall takes over what a recommendation says, so that a restart of memfit changes nothing in it and tells nothing twice.
func (m *state) recall(status *v1alpha1.MemoryRecommendationStatus) {
	m.standing, m.used = sizes(status), map[string]v1alpha1.ContainerRecommendation{}
	for _, c := range status.Containers {
		m.used[c.Container] = v1alpha1.ContainerRecommendation{Use: c.Use, UseSeen: c.UseSeen}
		source, past := sourcesOf(c.Evidence.Source)
		m.source, m.past = cmp.Or(m.source, source), cmp.Or(m.past, past)
	}
	m.liveSets = liveSets(status)
	m.told.drifting, m.told.sick = driftingIn(status), sickIn(status)
	if c := status.Coverage; c != nil {
		m.told.outOfDate = c.Missed + c.Stale
	}
	m.told.conflicted = inConflict(status) != ""
}
