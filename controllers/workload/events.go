// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/workload"
)

// EventRecorder records Events about workloads. It neither blocks nor fails.
type EventRecorder interface {
	Record(of memory.Workload, e workload.Event)
}

const (
	// reportingController names memfit in Events.
	reportingController = "memfit"
	// maxNote and maxName are the API's bounds, in bytes.
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
	of := fnv.New64a()
	fmt.Fprintf(of, "%q %q %q %q %q %q %t %d", about.Kind, about.UID, e.Container, e.Reason, e.Action,
		cmp.Or(e.ID, e.Note), about == e.Regarding, e.At.UnixNano())
	if related != nil {
		fmt.Fprintf(of, " %q %q", related.Kind, related.UID)
	}
	suffix := fmt.Sprintf(".%016x", of.Sum64())
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
