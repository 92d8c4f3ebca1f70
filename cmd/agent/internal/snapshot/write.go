// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Pod is a pod that snapshots are of. There is one Pod for each, as long as the pod is there.
type Pod struct {
	types.NamespacedName

	UID types.UID

	// What an earlier agent left, and whether the API server was asked for it. They are for [Writer.Run] alone.
	earlier *v1alpha1.MemorySnapshotStatus
	asked   bool
}

// Result is what became of a write.
type Result struct {
	Pod types.UID
	Err error
}

// ErrDeleted is the error of a write to a namespace that is being deleted, in which nothing new is taken: the pod ends
// with it.
var ErrDeleted = errors.New("the namespace is being deleted")

// Writer writes snapshots one after the other, apart from the reading loop: a slow API server delays no reading.
type Writer struct {
	client  rest.Interface
	queue   chan job
	results chan Result
}

type job struct {
	pod    *Pod
	status *v1alpha1.MemorySnapshotStatus
}

const (
	plural = "memorysnapshots"
	// queued writes wait; beyond, the caller keeps what it has for later. A node has 110 to 250 pods.
	queued = 64
	// writeTimeout is for one request.
	writeTimeout = 10 * time.Second
	// fieldManager owns the fields in server-side apply.
	fieldManager = "memfit-agent"
)

// NewWriter returns a writer through a client of memfit's group. [Writer.Run] does the work.
func NewWriter(client rest.Interface) *Writer {
	return &Writer{client: client, queue: make(chan job, queued), results: make(chan Result, queued)}
}

// Submit hands a snapshot over, and reports whether the queue had space. It does not wait.
func (w *Writer) Submit(pod *Pod, status *v1alpha1.MemorySnapshotStatus) bool {
	select {
	case w.queue <- job{pod, status}:
		return true
	default:
		return false
	}
}

// Results are of what was submitted, in order. Whoever submits must read them.
func (w *Writer) Results() <-chan Result { return w.results }

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-w.queue:
			result := Result{j.pod.UID, w.write(ctx, j)}
			select {
			case w.results <- result:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (w *Writer) write(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := w.ask(ctx, j.pod, j.status.NodeName); err != nil {
		return err
	}
	CarryOver(j.pod.earlier, j.status)
	Summarize(j.status)
	body, err := json.Marshal(object(j.pod, j.status))
	if err != nil {
		return fmt.Errorf("encoding the snapshot of %s: %w", j.pod, err)
	}
	err = w.client.Patch(types.ApplyPatchType).Namespace(j.pod.Namespace).Resource(plural).Name(j.pod.Name).
		Param("fieldManager", fieldManager).Param("force", "true").Body(body).Do(ctx).Error()
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("writing the snapshot of %s: %w", j.pod, ErrDeleted)
	case err != nil:
		return fmt.Errorf("writing the snapshot of %s: %w", j.pod, err)
	}
	return nil
}

// object is what is applied. The pod owns it, so that it goes with the pod and never outlives it under its name.
func object(pod *Pod, status *v1alpha1.MemorySnapshotStatus) *v1alpha1.MemorySnapshot {
	return &v1alpha1.MemorySnapshot{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemorySnapshot"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Status: *status,
	}
}

// ask reads, once for each pod, what an earlier agent of this node wrote of this very pod. Another node may have
// written a snapshot under the name of any pod.
func (w *Writer) ask(ctx context.Context, pod *Pod, node string) error {
	if pod.asked {
		return nil
	}
	var found v1alpha1.MemorySnapshot
	err := w.client.Get().Namespace(pod.Namespace).Resource(plural).Name(pod.Name).Do(ctx).Into(&found)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the snapshot of %s: %w", pod, err)
	}
	if found.IsOf(pod.UID, node) {
		pod.earlier = &found.Status
	}
	pod.asked = true
	return nil
}

// CarryOver takes the last kill and the last stall of each container from what an earlier agent wrote, where this one
// has seen none.
func CarryOver(before, now *v1alpha1.MemorySnapshotStatus) {
	if before == nil {
		return
	}
	for i := range now.Containers {
		c := &now.Containers[i]
		for j := range before.Containers {
			b := &before.Containers[j]
			if b.Container != c.Container {
				continue
			}
			if c.LastKill == nil {
				c.LastKill = b.LastKill
			}
			if c.LastStall == nil {
				c.LastStall = b.LastStall
			}
		}
	}
}
