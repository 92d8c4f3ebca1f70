// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// eventSink is an API server that keeps Events, each name once.
type eventSink struct {
	client.Writer
	mu    sync.Mutex
	kept  map[string]*eventsv1.Event
	order []*eventsv1.Event
	// fails answers a request before it is carried out; nil: none fails.
	fails func() error
}

func (s *eventSink) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		if err := s.fails(); err != nil {
			return err
		}
	}
	e := obj.(*eventsv1.Event)
	if s.kept == nil {
		s.kept = map[string]*eventsv1.Event{}
	}
	if s.kept[e.Name] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name)
	}
	s.kept[e.Name], s.order = e, append(s.order, e)
	return nil
}

func (s *eventSink) all() []*eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*eventsv1.Event(nil), s.order...)
}

var shopWeb = memory.Workload{
	Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UID: "d1",
}

// eventOn is an Event about a container of a pod, and, where both, about its workload as well.
func eventOn(pod, container, reason, note string, both bool) workload.Event {
	e := workload.Event{
		Regarding: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: pod, UID: types.UID("uid-" + pod),
			FieldPath: "spec.containers{" + container + "}",
		},
		Related: workload.WorkloadObject(shopWeb), Kind: corev1.EventTypeWarning, Reason: reason, Action: "Observed",
		Note: note, Container: container,
	}
	if both {
		e.OnRelated = "Pod " + pod + ": " + note
	}
	return e
}

// withWriter runs f beside a writer, in virtual time.
func withWriter(t *testing.T, sink *eventSink, f func(w *EventWriter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := NewEventWriter(sink, "host", clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Start(ctx) }()
		f(w)
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestEachEventHasItsOwnNote: two containers of one pod are killed 15 s apart, and one pod is resized three times
// within six minutes, once with numbers that it was resized with before. Each is an Event with its own note.
func TestEachEventHasItsOwnNote(t *testing.T) {
	sink := &eventSink{}
	want := []workload.Event{
		eventOn("web-1", "first", "OOMKilled", "Container first was OOM-killed", true),
		eventOn("web-1", "second", "OOMKilled", "Container second was OOM-killed", true),
		eventOn("web-1", "", "Resizing", "limit of container first 32Mi to 160Mi", false),
		eventOn("web-1", "", "Resizing", "limit of container second 32Mi to 160Mi", false),
		eventOn("web-1", "", "Resizing", "limit of container first 32Mi to 160Mi", false),
	}
	withWriter(t, sink, func(w *EventWriter) {
		for _, e := range want {
			w.Record(shopWeb, e)
			time.Sleep(15 * time.Second)
		}
	})
	var notes []string
	for _, e := range sink.all() {
		notes = append(notes, e.Note)
		if e.Regarding.UID == "" || e.Related == nil || e.Namespace != "shop" || e.ReportingController != "memfit" {
			t.Errorf("kubectl describe would not show %+v", e)
		}
	}
	var wantNotes []string
	for _, e := range want {
		wantNotes = append(wantNotes, e.Note)
		if e.OnRelated != "" {
			wantNotes = append(wantNotes, e.OnRelated)
		}
	}
	if got := strings.Join(notes, "\n"); got != strings.Join(wantNotes, "\n") {
		t.Errorf("written:\n%s\nwant:\n%s", got, strings.Join(wantNotes, "\n"))
	}
}

// TestEventsAreBounded: 100 replicas that are killed every five minutes for six hours take a bounded number of Events,
// and each kill is in an Event of its own or in a count that names its container.
func TestEventsAreBounded(t *testing.T) {
	sink := &eventSink{}
	kills := 0
	withWriter(t, sink, func(w *EventWriter) {
		for range 6 * 12 {
			for pod := range 100 {
				container := []string{"app", "proxy"}[pod%2]
				w.Record(shopWeb, eventOn(fmt.Sprint("web-", pod), container, "OOMKilled", "was OOM-killed", true))
				kills++
			}
			time.Sleep(5 * time.Minute)
		}
	})
	perHour, counted := map[time.Time]int{}, 0
	for _, e := range sink.all() {
		perHour[e.EventTime.Truncate(time.Hour)]++
		var more int
		var container string
		switch n, _ := fmt.Sscanf(e.Note, "%d more OOMKilled of container %s from", &more, &container); {
		case n == 2 && (container == "app" || container == "proxy") && e.Regarding.Kind == "Deployment":
			counted += more
		case e.Regarding.Kind == "Pod":
			counted++
		}
	}
	if counted != kills {
		t.Errorf("%d kills, and Events report %d", kills, counted)
	}
	const most = 2 * (eventBurst + int(time.Hour/eventEvery) + int(time.Hour/summaryEvery) + 1) // two containers
	for hour, n := range perHour {
		if n > most {
			t.Errorf("%d Events in the hour from %s, want at most %d", n, hour, most)
		}
	}
}

// TestARareEventIsNotLostAmongKills: while a crash loop takes all Events that it may, a rollback has its own.
func TestARareEventIsNotLostAmongKills(t *testing.T) {
	sink := &eventSink{}
	const rollback = "Limit 64Mi of container app is rolled back from every pod"
	withWriter(t, sink, func(w *EventWriter) {
		for i := range 5 * eventBurst {
			w.Record(shopWeb, eventOn(fmt.Sprint("web-", i), "app", "OOMKilled", "was OOM-killed", true))
			time.Sleep(time.Second)
		}
		w.Record(shopWeb, eventOn("web-1", "", "Reverted", rollback, true))
	})
	for _, e := range sink.all() {
		if e.Note == rollback {
			return
		}
	}
	t.Errorf("it is not among %d Events", len(sink.all()))
}

// TestAllWorkloadsShareABound: a node failure that kills the pods of many workloads writes a bounded number of Events.
func TestAllWorkloadsShareABound(t *testing.T) {
	sink := &eventSink{}
	const workloads, kills = 500, 10
	withWriter(t, sink, func(w *EventWriter) {
		for i := range workloads {
			of := shopWeb
			of.Ref.Name = fmt.Sprint("web-", i)
			for range kills {
				w.Record(of, eventOn(fmt.Sprint("web-", i), "app", "OOMKilled", "was OOM-killed", false))
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(2 * time.Minute)
	})
	individual, counted := 0, 0
	for _, e := range sink.all() {
		var more int
		if n, _ := fmt.Sscanf(e.Note, "%d more OOMKilled", &more); n == 1 {
			counted += more
		} else {
			individual++
		}
	}
	if individual < allEventBurst || individual > allEventBurst+int(workloads*kills*time.Millisecond/allEventEvery)+1 {
		t.Errorf("%d Events of their own", individual)
	}
	if individual+counted != workloads*kills {
		t.Errorf("%d Events and %d counted of %d kills", individual, counted, workloads*kills)
	}
}

// TestEventsOutliveAnAPIServer: while the API server does not answer nothing is lost, neither for a moment nor for
// longer than a writer tries; an answer that was lost makes no second Event; what it rejects is not sent again.
func TestEventsOutliveAnAPIServer(t *testing.T) {
	for name, outage := range map[string]time.Duration{
		"for a moment": 3 * time.Second, "for ten minutes": 10 * time.Minute,
	} {
		sink := &eventSink{}
		withWriter(t, sink, func(w *EventWriter) {
			back := time.Now().Add(outage)
			sink.fails = func() error {
				if time.Now().Before(back) {
					return errors.New("connection refused")
				}
				return nil
			}
			w.Record(shopWeb, eventOn("web-1", "app", "OOMKilled", "was OOM-killed", true))
			time.Sleep(outage + 20*time.Minute)
		})
		all := sink.all()
		if len(all) == 0 || !strings.Contains(all[0].Note, "was OOM-killed") &&
			!strings.HasPrefix(all[0].Note, "1 more OOMKilled of container app") {
			t.Errorf("%s: %d Events: %v", name, len(all), all)
		}
	}

	sink, tries := &eventSink{}, 0
	sink.fails = func() error {
		tries++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("the namespace is ending"))
	}
	withWriter(t, sink, func(w *EventWriter) {
		w.Record(shopWeb, eventOn("web-1", "app", "OOMKilled", "was OOM-killed", false))
		time.Sleep(time.Hour)
	})
	if tries != 1 {
		t.Errorf("an Event that is rejected was sent %d times", tries)
	}
}

// TestEventsAreWrittenWhenTheManagerStops: those in the queue and those that were only counted.
func TestEventsAreWrittenWhenTheManagerStops(t *testing.T) {
	sink := &eventSink{}
	const kills = eventBurst + 7
	synctest.Test(t, func(t *testing.T) {
		w := NewEventWriter(sink, "host", clock.RealClock{})
		for i := range kills {
			w.Record(shopWeb, eventOn(fmt.Sprint("web-", i), "app", "OOMKilled", "was OOM-killed", false))
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := w.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	all := sink.all()
	if len(all) != eventBurst+1 || !strings.HasPrefix(all[len(all)-1].Note, "7 more OOMKilled of container app from ") {
		t.Errorf("%d Events, the last %q", len(all), all[max(len(all)-1, 0)].Note)
	}
}

// TestEventNames: the API server takes every name, and what is reported again has the name that it had.
func TestEventNames(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	names := map[string]string{}
	for what, pod := range map[string]string{
		"short": "web-1", "as long as names can be": strings.Repeat("a", 253),
		"cut at a dot": strings.Repeat("a", 235) + "." + strings.Repeat("b", 17),
	} {
		e := eventOn(pod, "app", "OOMKilled", "was OOM-killed", true)
		e.At, e.ID = at, "restart 4"
		first := eventObjects(&e, "memfit-host")
		e.Note += "; filled by V8 heap 96Mi" // an agent reported more of it meanwhile
		for i, o := range eventObjects(&e, "memfit-other") {
			if o.Name != first[i].Name {
				t.Errorf("%s: %q and %q are one kill", what, o.Name, first[i].Name)
			}
			if errs := validation.IsDNS1123Subdomain(o.Name); len(errs) > 0 {
				t.Errorf("%s: %q: %v", what, o.Name, errs)
			}
			if other, taken := names[o.Name]; taken {
				t.Errorf("%s and %s are both called %q", what, other, o.Name)
			}
			names[o.Name] = what
		}
	}
}
