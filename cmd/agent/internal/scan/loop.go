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

// Writer takes snapshots and reports later whether they were written.
type Writer interface {
	Submit(pod *snapshot.Pod, status *v1alpha1.MemorySnapshotStatus) bool
	// Alarm submits the alarm of a status before all snapshots.
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
	Container string // its ID
	// Namespace of its pod. Cached facts about files are shared only within one namespace.
	Namespace string
	PIDs      []int        // of its processes, in the node's namespace
	More      bool         // it may have more processes
	Limit     memory.Bytes // of the container; 0: no limit
	WithMap   bool         // the result includes a map of its pages
}

// Finding is the result of an inspection.
type Finding struct {
	Container string // its ID
	Namespace string
	Memory    *v1alpha1.MemoryParts
	Map       *v1alpha1.MemoryMap // where the pod requests one
	Runtime   *v1alpha1.InspectedRuntime
	// CollectAt is the heap size at which the runtime's settings trigger a collection; 0: unknown. The runtime's own value
	// (Runtime.MaxHeap) has precedence.
	CollectAt memory.Bytes
	Err       error         // nothing could be read
	Spent     time.Duration // of processor time
	Unread    string        // why some memory could not be read; empty: all was read
}

// Loop is the agent's main loop. Its fields are set before the first Tick; one goroutine calls Tick.
type Loop struct {
	Tree      *cgroup.Tree
	Proc      fs.FS // of the node; its Sub may return a directory to close, as [live.Proc] does
	Pods      *pods.Set
	Writer    Writer
	Inspector Inspector // nil at tier Watch
	// Rescues reports whether containers of a namespace may borrow memory; nil: none may.
	Rescues func(namespace string) bool
	// Created reports whether cgroups were created since the last call in the cgroups last passed to Watch; nil: unknown.
	// Watch reports whether it watches all of them.
	Created func() bool
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
	searched   bool      // the cgroups were listed once, so a new one is new on the node
	search     time.Time
	watched    bool // every new container cgroup causes a notification
	podVersion string
}

// container is one instance of a container, kept until a minute after its cgroup was removed.
type container struct {
	cgroup.Container

	gauge          cgroup.Gauge
	recorder       *flightrecorder.Recorder
	pod            types.UID // "" until the API server has reported the pod
	name           string
	due            time.Time
	urgency        flightrecorder.Urgency // at the last reading
	processesRead  time.Time
	processesUsage memory.Bytes // its usage at that time
	gone           time.Time    // when its cgroup was found removed; zero while it exists
	trigger        bool         // report as soon as the pod is known
	finding        *Finding     // the last
	lastInspected  time.Time
	usageInspected memory.Bytes // its usage at that time
	found          time.Time    // when its cgroup was found
	request        pods.Request // of the pod, when the last inspection began
	answers        bool         // a user waits for the result of that inspection
	rescue         rescued
}

// object is a pod and its snapshot.
type object struct {
	pod     pods.Pod
	target  *snapshot.Pod // the Writer's state of it
	writes  flightrecorder.Writes
	written *v1alpha1.MemorySnapshotStatus // last submitted; nil: nothing, or it failed
	trigger bool
	found   time.Time // when it was first seen
	alarm   *v1alpha1.Alarm
	history map[string]history // of ended instances, by container name
	check   time.Time          // next comparison with the written snapshot
}

// history is the data that outlives an instance of a container.
type history struct {
	kills  int
	kill   *flightrecorder.Kill
	parts  *v1alpha1.MemoryParts // before that kill
	stall  *flightrecorder.Stall
	filled *v1alpha1.MemoryParts // when the stall was confirmed
}

const (
	// TickEvery is the shortest interval of a container that is not about to reach its limit, and idleEvery the interval
	// of ticks otherwise: a wakeup costs as much as forty readings.
	TickEvery = 250 * time.Millisecond
	idleEvery = 2 * TickEvery
	// maxEarly is how much earlier than TickEvery a tick may come.
	maxEarly = TickEvery / 5
	// searchEvery is how often cgroups are listed. A new pod or a removed cgroup shortens it to searchSoon, a new cgroup
	// to the next tick. Where all cgroups are watched, searchWatched is for missed notifications: a listing costs as much
	// as the readings of ten seconds.
	searchEvery   = 10 * time.Second
	searchSoon    = time.Second
	searchWatched = time.Minute
	// maxUnknown is how long a container is read before a pod's status on this node lists it: none lists a sandbox.
	maxUnknown = time.Minute
	keptAfter  = time.Minute // of a removed cgroup: until the API server has the kubelet's status of its end
)

// Tick does the work that is due. Between two ticks of all containers, it reads only those about to reach their limit.
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

// Spent records the processor time that Tick used, so that reading slows down if it takes too much.
func (l *Loop) Spent(spent, elapsed time.Duration) { l.governor.Spent(spent, elapsed) }

// searchCgroups finds new and ended containers.
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
		l.Log.Error("Listing the cgroups of containers", "error", err)
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
			l.ended(c, now)
		}
	}
	l.searched = true
}

// matchPods finds the pods of containers, and records how the kubelet reports that containers ended.
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
				continue // the killed child is known
			}
			if c.gone.IsZero() {
				l.lastEvents(c, now)
			}
			if c.recorder.Terminated(end.At, c.gone, now) {
				l.kill(c)
			}
		}
	}
}

// spread returns the position of a pod among others, from 0 to 1.
func spread(uid types.UID) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return float64(h.Sum32()) / (1 << 32)
}
