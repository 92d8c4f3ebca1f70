// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/pods"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/memory"
)

// Writer writes snapshots in the background. Submit and Alarm report whether a write was queued.
type Writer interface {
	Submit(pod *snapshot.Pod, status *v1alpha1.MemorySnapshotStatus) bool
	// Alarm submits the alarm of a status, ahead of all snapshots.
	Alarm(pod *snapshot.Pod, status *v1alpha1.MemorySnapshotStatus) bool
	Results() <-chan snapshot.Result
}

// Inspector inspects the processes of one container at a time. Start reports whether it began; Found has the result.
type Inspector interface {
	Start(inspection Inspection) bool
	Found() <-chan Finding
}

// Inspection describes a container to inspect.
type Inspection struct {
	Container string // the container's ID
	// Namespace of the pod. Cached facts about files are shared only within one namespace.
	Namespace string
	PIDs      []int        // of the processes, in the node's PID namespace
	More      bool         // there may be more processes
	Limit     memory.Bytes // the container's limit; 0: none
	WithMap   bool         // the result must have a map of the pages
}

// Finding is the result of an inspection.
type Finding struct {
	Container string // the container's ID
	Namespace string
	Memory    *v1alpha1.MemoryParts
	Map       *v1alpha1.MemoryMap // nil: not requested
	Runtime   *v1alpha1.InspectedRuntime
	// CollectAt is the heap size at which the runtime's settings trigger a collection; 0: unknown. The runtime's own value
	// (Runtime.MaxHeap) has precedence.
	CollectAt memory.Bytes
	Err       error         // why nothing could be read
	Spent     time.Duration // processor time
	Unread    string        // why some memory could not be read; empty: all was read
}

// Loop is the agent's main loop. Its fields are set before the first Tick; one goroutine calls Tick.
type Loop struct {
	Tree      *cgroup.Tree
	Proc      fs.FS // the node's /proc; a directory from its Sub is closed if it is an [io.Closer], as of [live.Proc]
	Pods      *pods.Set
	Writer    Writer
	Inspector Inspector // nil at tier Watch
	// Rescues reports whether memfit may lend memory to containers of a namespace; nil: no.
	Rescues func(namespace string) bool
	// Created reports whether a cgroup may have been created in a watched cgroup since the last call; nil: unknown.
	Created func() bool
	// Watch watches cgroups that have children, and reports whether it watches all of them.
	Watch   func(cgroups []string) (all bool)
	Node    string
	Log     *slog.Logger
	Metrics *Metrics

	containers map[string]*container // by ID
	objects    map[types.UID]*object // by pod
	governor   flightrecorder.Governor
	alarms     alarms
	ticked     time.Time // the last tick that read all containers
	next       time.Time // when the next container is due

	allowance  allowance // of inspections
	inspecting bool      // an inspection is running
	idle       time.Time // no container is due for inspection until then
	searched   bool      // cgroups were listed before, so an unknown one is new on the node
	search     time.Time // the last listing of cgroups; zero: list them now
	watched    bool      // every new container cgroup causes a notification
	podVersion string    // of the pods last matched with containers; empty: match them now
}

// container is one instance of a container, kept until a minute after its cgroup was removed.
type container struct {
	cgroup.Container

	gauge          cgroup.Gauge
	recorder       *flightrecorder.Recorder
	pod            types.UID // "" until the API server has reported the pod
	name           string
	due            time.Time              // the next reading
	urgency        flightrecorder.Urgency // at the last reading
	processesRead  time.Time              // when its processes were last listed
	processesUsage memory.Bytes           // its usage at that time
	gone           time.Time              // when the agent noticed the removal of its cgroup; zero while it exists
	trigger        bool                   // report as soon as the pod is known
	finding        *Finding               // of the last inspection that ended
	lastInspected  time.Time              // when the last inspection began
	usageInspected memory.Bytes           // its usage at that time
	found          time.Time              // when its cgroup was found
	request        pods.Request           // of the pod, when the last inspection began
	answers        bool                   // a user waits for the result of that inspection
	rescue         rescueState
}

// object is a pod and its snapshot.
type object struct {
	pod     pods.Pod
	target  *snapshot.Pod // the Writer's state of the pod
	writes  flightrecorder.Writes
	written *v1alpha1.MemorySnapshotStatus // last submitted; nil: none, or its write failed
	trigger bool                           // write soon, without waiting for a changed number
	found   time.Time                      // when the agent first saw the pod
	alarm   *v1alpha1.Alarm                // the last
	history map[string]history             // by container name
	check   time.Time                      // next comparison with the written snapshot
}

// history is the data that outlives an instance of a container.
type history struct {
	kills  int
	kill   *flightrecorder.Kill  // the last
	parts  *v1alpha1.MemoryParts // before that kill
	stall  *flightrecorder.Stall // the last
	filled *v1alpha1.MemoryParts // when that stall was confirmed
}

const (
	// TickEvery is the shortest interval between readings of a container that is not about to reach its limit.
	TickEvery = 250 * time.Millisecond
	// idleEvery is the interval of ticks while no container is due earlier: a wakeup costs as much as forty readings.
	idleEvery = 2 * TickEvery
	// maxEarly is how much earlier than TickEvery a tick may come.
	maxEarly = TickEvery / 5
	// searchEvery is the interval between listings of cgroups, and searchSoon the interval after a change of pods. The
	// creation or removal of a cgroup causes a listing in the next tick.
	searchEvery = 10 * time.Second
	searchSoon  = time.Second
	// searchWatched replaces both while all cgroups are watched, in case notifications are lost. A listing costs as much
	// as the readings of ten seconds.
	searchWatched = time.Minute
	// maxUnknown is how long a container is read that no pod's status lists. A sandbox is never listed.
	maxUnknown = time.Minute
	keptAfter  = time.Minute // how long a removed cgroup's container is kept, for the kubelet's report of its end
)

// Tick does the work that is due. A call within TickEvery reads only containers that are about to reach their limit.
func (l *Loop) Tick(ctx context.Context, now time.Time) {
	if since := now.Sub(l.ticked); 0 <= since && since < TickEvery-maxEarly {
		l.readImminent(now)
		return
	}
	l.ticked = now
	if l.containers == nil {
		l.containers, l.objects = map[string]*container{}, map[types.UID]*object{}
		l.alarms.imminent, l.alarms.lends = map[string]*container{}, map[string]bool{}
	}
	l.searchCgroups(now)
	l.matchPods(now)
	l.next = now.Add(idleEvery)
	clear(l.alarms.lends)
	lendable := 0
	for id, c := range l.containers {
		if ctx.Err() != nil {
			return
		}
		if !c.gone.IsZero() {
			if now.Sub(c.gone) > keptAfter {
				delete(l.containers, id)
			}
			continue
		}
		if c.pod == "" && now.Sub(c.found) > maxUnknown {
			continue // a sandbox, or a container of another cluster on this machine
		}
		if l.mayBorrow(c) {
			lendable++
		}
		if now.Add(TickEvery / 2).After(c.due) { // ticks come slightly early or late
			l.read(c, now)
		}
		if c.due.Before(l.next) {
			l.next = c.due
		}
	}
	l.alarms.lendable = lendable
	l.inspectNext(now)
	l.write(now)
	l.Metrics.observe(l)
}

// Spent records the processor time that Tick used within elapsed. If it is too much, readings become less frequent.
func (l *Loop) Spent(spent, elapsed time.Duration) { l.governor.Spent(spent, elapsed) }

// searchCgroups lists the cgroups if that is due, to find new and ended containers.
func (l *Loop) searchCgroups(now time.Time) {
	wait := searchEvery
	switch {
	case l.watched:
		wait = searchWatched
	case l.Pods.Version() != l.podVersion:
		wait = searchSoon
	}
	created := l.Created != nil && l.Created()
	if l.searched && now.Sub(l.search) < wait && !created {
		return
	}
	l.search = now
	found, parents, err := l.Tree.Containers()
	if err != nil {
		l.Log.Error("Could not list cgroups", "error", err)
		return
	}
	if l.Watch != nil {
		l.watched = l.Watch(parents)
	}
	exists := make(map[string]bool, len(found))
	for i := range found {
		id := found[i].ContainerID
		exists[id] = true
		if l.containers[id] == nil {
			l.containers[id] = &container{
				Container: found[i], gauge: l.Tree.Gauge(found[i].Dir), recorder: flightrecorder.New(l.searched), found: now,
			}
			l.podVersion = "" // match pods again
		}
	}
	for id, c := range l.containers {
		if !exists[id] && c.gone.IsZero() {
			l.markEnded(c, now)
		}
	}
	l.searched = true
}

// matchPods finds the pods of containers, and records the OOM kills that the kubelet reports.
func (l *Loop) matchPods(now time.Time) {
	if version := l.Pods.Version(); version == l.podVersion {
		return
	}
	all, version, listed := l.Pods.All()
	if !listed {
		return
	}
	l.podVersion = version
	for uid := range all {
		pod := all[uid]
		o := l.objects[uid]
		if o == nil {
			o = &object{
				target: &snapshot.Pod{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: uid},
				writes: flightrecorder.NewWrites(now, spread(uid)), found: now, history: map[string]history{},
			}
			l.objects[uid] = o
		}
		o.pod = pod
		for i := range pod.Containers {
			l.match(uid, &pod.Containers[i], now)
		}
	}
	for uid := range l.objects {
		if _, exists := all[uid]; !exists {
			delete(l.objects, uid)
		}
	}
}

func (l *Loop) match(uid types.UID, reported *pods.Container, now time.Time) {
	if c := l.containers[reported.ID]; c != nil {
		c.pod, c.name = uid, reported.Name
	}
	for _, end := range reported.Killed {
		if c := l.containers[end.ID]; c != nil {
			c.pod, c.name = uid, reported.Name
			if end.Exited && c.recorder.Kills() > 0 {
				continue // the kill of the child is recorded
			}
			if c.gone.IsZero() {
				l.lastEvents(c, now)
			}
			if c.recorder.Terminated(end.At, c.gone, now) {
				l.recordKill(c)
			}
		}
	}
}

// spread returns a number from 0 to 1 that depends on the pod, to spread writes over time.
func spread(uid types.UID) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return float64(h.Sum32()) / (1 << 32)
}
