// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// Bounds of Events. An Event takes about 1 KiB in etcd, for an hour by default: about half a MiB for a workload in a
// crash loop. Without bounds, one of 100 pods would write 2,400 an hour. Kubelets write up to 50 a second each.
const (
	// A workload may write eventBurst Events in a burst, then one each eventEvery. The last eventReserve are reserved for
	// groups without an Event within summaryEvery, so that kills cannot displace a rollback.
	eventBurst   = 240
	eventReserve = 40
	eventEvery   = 30 * time.Second
	// allEventBurst and allEventEvery are the same for all workloads together.
	allEventBurst = 1000
	allEventEvery = 50 * time.Millisecond
	// Further Events are counted by reason and container, for at most maxGroups pairs of a workload, and summarized after
	// firstSummary, then every summaryEvery: at most 192 an hour.
	firstSummary = time.Minute
	summaryEvery = 5 * time.Minute
	maxGroups    = 16
	// tidyEvery is how often the writer checks for due summaries.
	tidyEvery = 10 * time.Second
)

const (
	eventWriters = 4
	// eventQueue holds the burst of all workloads; Events beyond that are counted.
	eventQueue = allEventBurst
	// eventTimeout bounds one attempt.
	eventTimeout = 10 * time.Second
	// eventsAtEnd is how long the writer continues when the manager stops.
	eventsAtEnd = 5 * time.Second
)

// eventTries take half a minute without the attempts themselves.
var eventTries = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6}

// EventWriter writes Events in the background, one object for each, with a name derived from its contents. The recorder
// of client-go joins Events of equal type, action, reason and objects into a series for six minutes and writes the note
// of the first only (eventKey in tools/events): 65 kills gave 20 Events, and a second size change none. The writer
// counts the Events beyond a workload's bound, and reports their number. Use [NewEventWriter].
type EventWriter struct {
	client   client.Writer
	instance string
	clock    clock.WithTicker
	queue    chan pendingEvent

	mu        sync.Mutex
	all       *rate.Limiter
	workloads map[memory.WorkloadRef]*workloadEvents
}

// pendingEvent is one Event to be written, and the second one about the related object.
type pendingEvent struct {
	of    memory.Workload
	event workload.Event
}

// NewEventWriter returns a writer; the caller must call Start. hostname distinguishes managers.
func NewEventWriter(c client.Writer, hostname string, clock clock.WithTicker) *EventWriter {
	return &EventWriter{
		client: c, instance: reportingController + "-" + hostname, clock: clock, queue: make(chan pendingEvent, eventQueue),
		all: rate.NewLimiter(rate.Every(allEventEvery), allEventBurst), workloads: map[memory.WorkloadRef]*workloadEvents{},
	}
}

// workloadEvents has the bounds of one workload, and its unwritten Events.
type workloadEvents struct {
	of     memory.Workload
	bucket *rate.Limiter
	groups map[eventGroup]*heldEvents
	// written is the time of the last Event of each group, within summaryEvery.
	written map[eventGroup]time.Time
	// due is the time of the next summary, and summed that of the last.
	due, summed time.Time
}

// eventGroup identifies Events that are counted together.
type eventGroup struct{ kind, reason, action, container string }

// heldEvents counts unwritten Events.
type heldEvents struct {
	count       int64
	since, last time.Time
	// about is the pod of the last one, or the workload.
	about *corev1.ObjectReference
}

// Record queues the Event, or counts it if its workload, or all together, exceed their bound.
func (w *EventWriter) Record(of memory.Workload, e workload.Event) {
	now := w.clock.Now()
	if e.At.IsZero() {
		e.At = now
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 1
	if e.OnRelated != "" {
		n = 2
	}
	its := w.workload(of)
	if w.all.TokensAt(now) < float64(n) || its.bucket.TokensAt(now) < float64(n+its.reserve(&e, now)) ||
		!w.enqueue(pendingEvent{of, e}) {
		its.hold(&e, now)
		return
	}
	w.all.AllowN(now, n)
	its.bucket.AllowN(now, n)
	its.written[groupOf(&e)] = now
}

// PodsNotCreated records that the webhook leaves new pods of a workload unchanged.
func (w *EventWriter) PodsNotCreated(of memory.Workload, note string) {
	w.Record(of, workload.PodsNotCreated(of, note))
}

func (w *EventWriter) workload(of memory.Workload) *workloadEvents {
	its, known := w.workloads[of.Ref]
	if !known {
		its = &workloadEvents{
			bucket: rate.NewLimiter(rate.Every(eventEvery), eventBurst),
			groups: map[eventGroup]*heldEvents{}, written: map[eventGroup]time.Time{},
		}
		w.workloads[of.Ref] = its
	}
	its.of = of
	return its
}

// enqueue reports whether the queue had space.
func (w *EventWriter) enqueue(p pendingEvent) bool {
	select {
	case w.queue <- p:
		return true
	default:
		return false
	}
}

func groupOf(e *workload.Event) eventGroup {
	return eventGroup{e.Kind, e.Reason, e.Action, e.Container}
}

// reserve returns the number of tokens that an Event must leave for other groups.
func (its *workloadEvents) reserve(e *workload.Event, now time.Time) int {
	if last, written := its.written[groupOf(e)]; written && now.Sub(last) < summaryEvery {
		return eventReserve
	}
	return 0
}

// hold counts an unwritten Event.
func (its *workloadEvents) hold(e *workload.Event, now time.Time) {
	group := groupOf(e)
	if _, known := its.groups[group]; !known && len(its.groups) >= maxGroups {
		group.container = "" // reasons are few
	}
	held := its.groups[group]
	if held == nil {
		held = &heldEvents{since: e.At}
		its.groups[group] = held
	}
	held.count++
	held.last, held.about = e.At, e.Regarding
	if its.due.IsZero() {
		its.due = now.Add(firstSummary)
		if next := its.summed.Add(summaryEvery); next.After(its.due) {
			its.due = next
		}
	}
}

// summarize queues the due summaries, or all, and drops workloads with a full bucket.
func (w *EventWriter) summarize(now time.Time, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, its := range w.workloads {
		maps.DeleteFunc(its.written, func(_ eventGroup, at time.Time) bool { return now.Sub(at) >= summaryEvery })
		if len(its.groups) > 0 && (all || !now.Before(its.due)) {
			for group, held := range its.groups {
				if w.enqueue(pendingEvent{its.of, summary(its.of, group, held, now)}) {
					delete(its.groups, group)
				}
			}
			its.due, its.summed = time.Time{}, now
			if len(its.groups) > 0 { // the queue is full
				its.due = now.Add(firstSummary)
			}
		}
		if len(its.groups) == 0 && its.bucket.TokensAt(now) >= eventBurst && now.Sub(its.summed) >= summaryEvery {
			delete(w.workloads, ref)
		}
	}
}

// summary reports counted Events.
func summary(of memory.Workload, g eventGroup, held *heldEvents, now time.Time) workload.Event {
	container := ""
	if g.container != "" {
		container = " of container " + g.container
	}
	note := fmt.Sprintf("%d more %s%s from %s to %s, the last about %s %s: counted, not reported one by one "+
		"(at most %d Events of a workload at once, then one every %s)",
		held.count, g.reason, container, format.Time(held.since), format.TimeOfDay(held.last, held.since),
		held.about.Kind, held.about.Name, eventBurst-eventReserve, eventEvery)
	return workload.Event{
		Regarding: workload.WorkloadObject(of), Related: held.about, Kind: g.kind, Reason: g.reason, Action: g.action,
		Note: note, Container: g.container, At: now,
	}
}

// Start writes until the context ends, and then drains the queue for eventsAtEnd.
func (w *EventWriter) Start(ctx context.Context) error {
	var writers sync.WaitGroup
	for range eventWriters {
		writers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case p := <-w.queue:
					w.write(ctx, &p)
				}
			}
		})
	}
	ticker := w.clock.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			w.summarize(w.clock.Now(), false)
		case <-ctx.Done():
			writers.Wait()
			w.drain(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// drain writes the remaining Events.
func (w *EventWriter) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, eventsAtEnd)
	defer cancel()
	w.summarize(w.clock.Now(), true)
	for ctx.Err() == nil {
		select {
		case p := <-w.queue:
			w.write(ctx, &p)
		default:
			return
		}
	}
}

// write creates the objects of one Event. If the API server is unreachable for a minute, it counts the Event.
func (w *EventWriter) write(ctx context.Context, p *pendingEvent) {
	for _, object := range eventObjects(&p.event, w.instance) {
		err := w.create(ctx, object)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			continue
		case ctx.Err() != nil:
			w.enqueue(*p) // drain writes it
			return
		case rejected(err):
			logf.FromContext(ctx).Info("The API server rejected an Event", "workload", p.of.Ref, "reason", p.event.Reason,
				"error", err.Error())
			continue // the Event about the other object may succeed
		}
		w.mu.Lock()
		w.workload(p.of).hold(&p.event, w.clock.Now())
		w.mu.Unlock()
		return
	}
}

// create retries while the API server does not respond.
func (w *EventWriter) create(ctx context.Context, object *eventsv1.Event) (err error) {
	ended := wait.ExponentialBackoffWithContext(ctx, eventTries, func(ctx context.Context) (done bool, _ error) {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		defer cancel()
		err = w.client.Create(ctx, object.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err) || rejected(err), nil
	})
	return cmp.Or(err, ended)
}

// rejected reports whether the API server will never accept an Event: its namespace is deleted or terminating, memfit
// lacks the right, or the Event is invalid.
func rejected(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err)
}
