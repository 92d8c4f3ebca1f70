// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
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

// remembered is what memfit knows of one workload between two reconciles: at most 1.5 KiB per container name, plus the ledger.
// The MemoryCheckpoint is its copy on the API server: always current for the ledger, and at most CheckpointEvery old for the rest.
type remembered struct {
	// owner is the UID of the workload; another of the same name starts afresh. Empty: not known.
	owner types.UID
	// mu is held for a look, and while everything is written at the end.
	mu sync.Mutex
	// lookedAt is the time of the last look.
	lookedAt time.Time
	// restUntil is when samples alone are looked at again; zero: at once.
	restUntil time.Time
	// measuredSince is the first look of this memfit, from where on its pods are measured; zero: they are not.
	measuredSince time.Time

	ledger     signals.Ledger
	containers map[string]*history.Container
	// instances are the running containers, to know the highest use of one before it was killed. Not checkpointed: after a restart
	// of memfit, a kill's peak is what was seen since.
	instances map[memory.ContainerRef]*instance
	// profile governed the workload at the last look, and template was its newest pod.
	profile  *profile.Named
	template *corev1.Pod
	// source says where samples come from.
	source string
	// past says where what was used before memfit looked came from; empty: nowhere. pastKnown: it was read, or is not needed;
	// pastAsked: it is on its way, and meanwhile are the samples that come after it.
	past                 string
	pastKnown, pastAsked bool
	meanwhile            []memory.Sample
	// restarts are those for drift.action: Restart; savedRestarts is how they stand in the checkpoint, and restartRefused until when
	// and why the API server refused one.
	restarts       drift.State
	savedRestarts  []byte
	restartRefused refusal
	// sizing is what was begun to do to running pods; savedSizing is how it stands in the checkpoint.
	sizing      apply.State
	savedSizing []byte
	// drifting and sick are what was told about the shape of memory last.
	drifting string
	sick     []string
	// judged are the shapes found last, by container.
	judged map[string]shapeCache
	// standing are the sizes recommended last, by container: they stand while evidence is missing.
	standing map[string]v1alpha1.Size
	// used is what the recommendation said of use before a restart of memfit, by container: it stands until somebody reads again.
	used map[string]v1alpha1.ContainerRecommendation
	// liveSets are the most that was alive in replicas without a heap cap, by container, as published last.
	liveSets map[string]history.LiveSet
	// outOfDate is the number of pods that ran without what the profile would set, at the last look.
	outOfDate int32
	// countsFaults: the source of usage counts major page faults.
	countsFaults bool
	// conflicted: that another autoscaler steers this memory was told.
	conflicted bool
	// toldFull: that the ledger is full was told.
	toldFull bool

	// checkpoint identifies the copy on the API server; its resource version is what the next write builds on.
	checkpoint v1alpha1.MemoryCheckpoint
	// saved is the ledger in that copy, and attempted one that a write of unknown outcome may have put there.
	saved, attempted []byte
	savedAt          time.Time
	// suspect: the last write failed, so the copy has to be looked at before the next.
	suspect bool

	recommendation projection
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

func newRemembered() *remembered {
	return &remembered{
		containers: map[string]*history.Container{}, instances: map[memory.ContainerRef]*instance{}, standing: map[string]v1alpha1.Size{},
	}
}

// history of a container name, made when first needed.
func (m *remembered) history(container string) *history.Container {
	h, found := m.containers[container]
	if !found {
		h = history.New()
		m.containers[container] = h
	}
	return h
}

// look takes in what pods showed and returns the kills that are new.
func (m *remembered) look(observations []signals.Observation, now time.Time) []memory.OOMKill {
	return m.ledger.Update(observations, m.peak, now)
}

// news says whether mail tells of something that ended since the last look.
func (m *remembered) news(mail *PendingEvents) bool {
	if len(mail.Counters) > 0 || mail.Last != nil {
		return true
	}
	return slices.ContainsFunc(mail.Observations, func(o signals.Observation) bool {
		in, known := m.instances[o.Container]
		return len(o.Ended) > 0 && (!known || o.Restarts > in.restarts || o.Running.IsZero())
	})
}

// settle takes in ends of instances and limits. It comes after the ledger is safe: it forgets the peaks of instances that ended.
func (m *remembered) settle(observations []signals.Observation, now time.Time) {
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
func (m *remembered) measure(samples []memory.Sample, now time.Time) {
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
	if m.pastAsked && len(m.meanwhile) < maxSamples {
		m.meanwhile = append(m.meanwhile, samples...)
	}
}

// peak is the highest RSS seen in the instance of a container that runs or has just ended.
func (m *remembered) peak(c memory.ContainerRef) memory.Bytes {
	if in, found := m.instances[c]; found {
		return in.peak
	}
	return 0
}

// instanceKept is how long a container that is not seen any more is remembered, so that a late event still finds its peak.
const instanceKept = time.Hour

// forgetGone drops what belongs to pods that are gone.
func (m *remembered) forgetGone(live map[types.UID]bool, now time.Time) {
	m.ledger.Forget(live, now)
	maps.DeleteFunc(m.instances, func(c memory.ContainerRef, in *instance) bool {
		return !live[c.UID] && now.Sub(in.seen) > instanceKept
	})
}

// forgetNames drops the histories of containers that no governed pod has any more, once there are more than a checkpoint holds: names of
// older versions of the workload would otherwise take the room of those that run, and memory for ever.
func (m *remembered) forgetNames(governed []*corev1.Pod) {
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

// due says whether a checkpoint with this status must be written now. A changed ledger never waits; history may, because losing minutes
// of samples changes no number.
func (m *remembered) due(status *v1alpha1.MemoryCheckpointStatus, every time.Duration, now time.Time) bool {
	if !bytes.Equal(status.Ledger, m.saved) || !bytes.Equal(status.Drift, m.savedRestarts) || !bytes.Equal(status.Sizing, m.savedSizing) {
		return true
	}
	return len(m.containers) > 0 && now.Sub(m.savedAt) >= every
}

// pack is what the checkpoint should hold, without histories.
func (m *remembered) pack() (v1alpha1.MemoryCheckpointStatus, error) {
	status := v1alpha1.MemoryCheckpointStatus{Version: checkpointVersion}
	var err error
	if status.Ledger, err = m.ledger.MarshalBinary(); err != nil {
		return status, fmt.Errorf("encoding the ledger: %w", err)
	}
	if status.Drift, err = packed("the restarts", &m.restarts); err != nil {
		return status, err
	}
	status.Sizing, err = packed("the state of resizes", &m.sizing)
	return status, err
}

// packHistories adds the histories of containers as far as the checkpoint has room for them, in the order of their names. They come
// last because they are the only part that can be had again: usage is measured anew. What was counted and what was begun cannot.
func (m *remembered) packHistories(status *v1alpha1.MemoryCheckpointStatus) error {
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
func (m *remembered) unpack(c *v1alpha1.MemoryCheckpoint) (lost []error, err error) {
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
	m.ledger, m.containers, m.saved, m.restarts, m.sizing = ledger, containers, slices.Clone(c.Status.Ledger), restarts, sizing
	return lost, nil
}

// rollBack makes the ledger what it was at the last write that is known to have worked. The mail goes back to the inbox.
func (m *remembered) rollBack() error {
	if len(m.saved) == 0 {
		m.ledger = signals.Ledger{}
		return nil
	}
	if err := m.ledger.UnmarshalBinary(m.saved); err != nil {
		return fmt.Errorf("decoding the ledger as it was: %w", err)
	}
	return nil
}
