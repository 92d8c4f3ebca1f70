// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/workload"
)

// EventRecorder records Events about workloads. It neither blocks nor fails.
type EventRecorder interface {
	Record(of memory.Workload, e workload.Event)
}

// Limits of Events. An Event takes about 1 KiB in etcd, for an hour by default: about half a MiB for a workload in a
// crash loop. Without limits, a workload with 100 pods would write 2,400 an hour. A kubelet writes up to 50 a second.
const (
	// eventBurst and eventEvery limit each group of a workload's Events: eventBurst Events, then one every eventEvery.
	// Groups have separate limits, so that Events about OOM kills cannot displace one about a rollback.
	eventBurst = 200
	eventEvery = 30 * time.Second
	// allEventBurst and allEventEvery limit the Events of all workloads together.
	allEventBurst = 1000
	allEventEvery = 50 * time.Millisecond
	// Further Events are counted, and summarized after firstSummary, then every summaryEvery.
	firstSummary = time.Minute
	summaryEvery = 5 * time.Minute
	tidyEvery    = 10 * time.Second // the writer checks for due summaries
)

const (
	eventWriters = 4
	eventQueue   = allEventBurst    // length of the queue
	eventTimeout = 10 * time.Second // of one attempt
	drainTimeout = 5 * time.Second  // for writing when the manager stops
)

// eventTries is the backoff between attempts: half a minute in total.
var eventTries = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6}

// EventWriter writes Events in the background: one object per Event, with a name derived from its contents. It counts
// Events above its limits, and reports their number. client-go's recorder is not used, because it joins Events with
// equal type, action, reason and objects into a series for six minutes and keeps only the first note (eventKey in
// tools/events): it wrote 20 Events about 65 kills, and none about a second size change. Use [NewEventWriter].
type EventWriter struct {
	client   client.Writer
	instance string
	clock    clock.WithTicker
	queue    chan pendingEvent

	mu     sync.Mutex
	all    *rate.Limiter
	groups map[eventGroup]*boundedEvents
}

// pendingEvent is an Event to be written, with a second one about the related object if event.OnRelated is set.
type pendingEvent struct {
	of    memory.Workload
	event workload.Event
}

// NewEventWriter returns a writer; the caller must call Start. hostname distinguishes replicas.
func NewEventWriter(c client.Writer, hostname string, clock clock.WithTicker) *EventWriter {
	return &EventWriter{
		client: c, instance: reportingController + "-" + hostname, clock: clock, queue: make(chan pendingEvent, eventQueue),
		all: rate.NewLimiter(rate.Every(allEventEvery), allEventBurst), groups: map[eventGroup]*boundedEvents{},
	}
}

// eventGroup identifies Events that are limited and counted together.
type eventGroup struct {
	of                              memory.WorkloadRef
	kind, reason, action, container string
}

// boundedEvents has the limit of a group, and counts its unwritten Events.
type boundedEvents struct {
	of          memory.Workload
	bucket      *rate.Limiter
	count       int64
	since, last time.Time               // of the first and the last unwritten Event
	about       *corev1.ObjectReference // object of the last unwritten Event
	due         time.Time               // when the next summary is due
}

// Record queues the Event, or counts it if the limit of its group or of all Events is reached.
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
	g := w.group(of, &e)
	if w.all.TokensAt(now) < float64(n) || g.bucket.TokensAt(now) < float64(n) || !w.enqueue(pendingEvent{of, e}) {
		g.countUnwritten(&e, now)
		return
	}
	w.all.AllowN(now, n)
	g.bucket.AllowN(now, n)
}

// PodsNotCreated records that the webhook leaves new pods of a workload unchanged.
func (w *EventWriter) PodsNotCreated(of memory.Workload, note string) {
	w.Record(of, workload.PodsNotCreated(of, note))
}

func (w *EventWriter) group(of memory.Workload, e *workload.Event) *boundedEvents {
	key := eventGroup{of.Ref, e.Kind, e.Reason, e.Action, e.Container}
	g, known := w.groups[key]
	if !known {
		g = &boundedEvents{bucket: rate.NewLimiter(rate.Every(eventEvery), eventBurst)}
		w.groups[key] = g
	}
	g.of = of
	return g
}

func (w *EventWriter) enqueue(p pendingEvent) bool {
	select {
	case w.queue <- p:
		return true
	default:
		return false
	}
}

func (g *boundedEvents) countUnwritten(e *workload.Event, now time.Time) {
	if g.count == 0 {
		g.since = e.At
		if first := now.Add(firstSummary); g.due.Before(first) {
			g.due = first
		}
	}
	g.count++
	g.last, g.about = e.At, e.Regarding
}

// summarize queues the due summaries, or all of them, as far as the queue has space. It drops idle groups.
func (w *EventWriter) summarize(now time.Time, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, g := range w.groups {
		switch due := all || !now.Before(g.due); {
		case g.count == 0 && due && g.bucket.TokensAt(now) >= eventBurst:
			delete(w.groups, key)
		case g.count > 0 && due && w.enqueue(pendingEvent{g.of, g.summary(key, now)}):
			g.count, g.due = 0, now.Add(summaryEvery)
		}
	}
}

func (g *boundedEvents) summary(key eventGroup, now time.Time) workload.Event {
	container := ""
	if key.container != "" {
		container = " of container " + key.container
	}
	note := fmt.Sprintf("%d more %s%s from %s to %s, the last about %s %s, not reported individually "+
		"(at most %d Events per reason and container, then one every %s)",
		g.count, key.reason, container, format.Time(g.since), format.TimeOfDay(g.last, g.since), g.about.Kind, g.about.Name,
		eventBurst, eventEvery)
	return workload.Event{
		Regarding: workload.WorkloadObject(g.of), Related: g.about, Kind: key.kind, Reason: key.reason, Action: key.action,
		Note: note, Container: key.container, At: now,
	}
}

// Start writes Events until ctx ends, and then drains the queue for at most drainTimeout.
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

func (w *EventWriter) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
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

// write creates the objects of one Event. If the API server does not respond to any attempt, it counts the Event.
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
		w.group(p.of, &p.event).countUnwritten(&p.event, w.clock.Now())
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

const (
	reportingController = "memfit"
	// maxNote and maxName are the API's maximum lengths, in bytes.
	maxNote = 1024
	maxName = 253
)

// eventObjects returns the Events to create for e, one about each object. e.At must be set. Equal events have equal
// names, so that none is created twice.
func eventObjects(e *workload.Event, instance string) []*eventsv1.Event {
	all := []*eventsv1.Event{eventObject(e, e.Regarding, e.Related, e.Note, instance)}
	if e.OnRelated != "" && e.Related != nil {
		all = append(all, eventObject(e, e.Related, e.Regarding, e.OnRelated, instance))
	}
	return all
}

func eventObject(e *workload.Event, about, related *corev1.ObjectReference, note, instance string) *eventsv1.Event {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %q %q %q %q %q %t %d", about.Kind, about.UID, e.Container, e.Reason, e.Action,
		cmp.Or(e.ID, e.Note), about == e.Regarding, e.At.UnixNano())
	if related != nil {
		fmt.Fprintf(hash, " %q %q", related.Kind, related.UID)
	}
	suffix := fmt.Sprintf(".%016x", hash.Sum64())
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: about.Namespace,
			Name:      strings.TrimRight(about.Name[:min(len(about.Name), maxName-len(suffix))], "-.") + suffix,
		},
		EventTime: metav1.NewMicroTime(e.At), ReportingController: reportingController, ReportingInstance: instance,
		Type: e.Kind, Reason: e.Reason, Action: e.Action, Regarding: *about, Related: related,
		Note: quote.Cut(note, maxNote),
	}
}
