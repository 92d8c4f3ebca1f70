// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Pod is the write state of a pod's snapshot. The caller keeps one for each pod while the pod exists.
type Pod struct {
	types.NamespacedName

	UID types.UID

	mu      sync.Mutex                     // held during API calls, so that the writes for a pod stay in order
	earlier *v1alpha1.MemorySnapshotStatus // the snapshot that an earlier agent wrote; nil: none
	read    bool                           // earlier was read
	stored  bool                           // the API server has a snapshot of this pod, by UID
	alarm   *v1alpha1.Alarm                // last written
}

// Result is the result of a write.
type Result struct {
	Pod   types.UID
	Err   error
	Alarm *v1alpha1.Alarm // the written alarm; nil: a snapshot was written
	Took  time.Duration   // of the request; 0: it failed
}

// ErrDeleted is returned for a write to a namespace that is being deleted, which accepts no new objects.
var ErrDeleted = errors.New("the namespace is being deleted")

// Writer writes snapshots one after the other, in a goroutine of its own, so that a slow API server does not delay
// readings of memory. Alarms do not wait for snapshots.
type Writer struct {
	client        rest.Interface
	pace          *rate.Limiter // of snapshots
	queue, alarms chan job
	results       chan Result
}

type job struct {
	pod    *Pod
	status *v1alpha1.MemorySnapshotStatus
}

const (
	plural = "memorysnapshots"
	// queued bounds the waiting writes; the caller must retry the rest. A node has 110 to 250 pods.
	queued = 64
	// writeTimeout bounds the write of a snapshot, and alarmTimeout that of an alarm, which is useless later.
	writeTimeout = 10 * time.Second
	alarmTimeout = 3 * time.Second
	// writeEvery is the interval between snapshots of a node, and writesAtOnce their burst: a new node has a hundred pods.
	writeEvery   = 400 * time.Millisecond
	writesAtOnce = 5
	// alarmsAtOnce bounds the concurrent writes of alarms, and those that wait. One takes up to 125 ms on a busy node.
	alarmsAtOnce = 4
	fieldManager = "memfit-agent" // owns the fields in server-side apply
)

// NewWriter returns a Writer. The client must be for memfit's API group, and have no rate limit of its own.
// [Writer.Run] does the work.
func NewWriter(client rest.Interface) *Writer {
	return &Writer{
		client: client, pace: rate.NewLimiter(rate.Every(writeEvery), writesAtOnce), queue: make(chan job, queued),
		alarms: make(chan job, alarmsAtOnce), results: make(chan Result, queued+2*alarmsAtOnce),
	}
}

// Submit queues a snapshot, and reports whether the queue had space. It does not wait.
func (w *Writer) Submit(pod *Pod, status *v1alpha1.MemorySnapshotStatus) bool {
	return offer(w.queue, job{pod, status})
}

// Alarm queues the alarm of a status, and reports whether the queue had space. It does not wait. The rest of the status
// is written only if the API server has no snapshot of the pod yet.
func (w *Writer) Alarm(pod *Pod, status *v1alpha1.MemorySnapshotStatus) bool {
	return offer(w.alarms, job{pod, status})
}

func offer(queue chan<- job, j job) bool {
	select {
	case queue <- j:
		return true
	default:
		return false
	}
}

// Results returns the results of snapshots, in order, and of alarms. The submitter must read them.
func (w *Writer) Results() <-chan Result { return w.results }

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	for range alarmsAtOnce {
		go w.run(ctx, w.alarms, func(j job) Result {
			took, err := w.writeAlarm(ctx, j)
			return Result{j.pod.UID, err, j.status.Alarm, took}
		})
	}
	w.run(ctx, w.queue, func(j job) Result {
		_ = w.pace.Wait(ctx) // fails only when ctx has ended
		took, err := w.write(ctx, j)
		return Result{Pod: j.pod.UID, Err: err, Took: took}
	})
}

func (w *Writer) run(ctx context.Context, queue <-chan job, write func(job) Result) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-queue:
			result := write(j)
			select {
			case w.results <- result:
			case <-ctx.Done():
				return
			}
		}
	}
}

// writeAlarm changes one field of a pod's snapshot, or writes the first snapshot. A snapshot of the same name may
// belong to an earlier pod, which must not get this pod's alarm.
func (w *Writer) writeAlarm(ctx context.Context, j job) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, alarmTimeout)
	defer cancel()
	j.pod.mu.Lock()
	defer j.pod.mu.Unlock()
	if !j.pod.stored {
		return w.apply(ctx, j)
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"alarm": j.status.Alarm}})
	if err != nil {
		return 0, fmt.Errorf("encoding the alarm of %s: %w", j.pod, err)
	}
	sent := time.Now()
	err = w.client.Patch(types.MergePatchType).Namespace(j.pod.Namespace).Resource(plural).Name(j.pod.Name).
		Param("fieldManager", fieldManager).Body(body).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		return w.apply(ctx, j)
	case err != nil:
		return 0, fmt.Errorf("writing the alarm of %s: %w", j.pod, err)
	}
	j.pod.alarm = j.status.Alarm
	return time.Since(sent), nil
}

func (w *Writer) write(ctx context.Context, j job) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	j.pod.mu.Lock()
	defer j.pod.mu.Unlock()
	return w.apply(ctx, j)
}

// apply writes a snapshot with the newest alarm, which may have been written after the snapshot was submitted.
func (w *Writer) apply(ctx context.Context, j job) (took time.Duration, err error) {
	if a := j.pod.alarm; a != nil && (j.status.Alarm == nil || j.status.Alarm.Sequence < a.Sequence) {
		j.status.Alarm = a
	}
	if err := readEarlier(ctx, j.pod, j.status.NodeName, w.client); err != nil {
		return 0, err
	}
	CarryOver(j.pod.earlier, j.status)
	Summarize(j.status)
	body, err := json.Marshal(object(j.pod, j.status))
	if err != nil {
		return 0, fmt.Errorf("encoding the snapshot of %s: %w", j.pod, err)
	}
	sent := time.Now()
	err = w.client.Patch(types.ApplyPatchType).Namespace(j.pod.Namespace).Resource(plural).Name(j.pod.Name).
		Param("fieldManager", fieldManager).Param("force", "true").Body(body).Do(ctx).Error()
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return 0, fmt.Errorf("writing the snapshot of %s: %w", j.pod, ErrDeleted)
	case err != nil:
		return 0, fmt.Errorf("writing the snapshot of %s: %w", j.pod, err)
	}
	j.pod.stored, j.pod.alarm = true, j.status.Alarm
	return time.Since(sent), nil
}

// object returns the MemorySnapshot to apply. The pod owns it, so that both are deleted together.
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

// readEarlier reads, once for each pod, the snapshot that an earlier agent of this node wrote for it. It ignores a
// snapshot of that name from another node or for another pod.
func readEarlier(ctx context.Context, pod *Pod, node string, client rest.Interface) error {
	if pod.read {
		return nil
	}
	var found v1alpha1.MemorySnapshot
	err := client.Get().Namespace(pod.Namespace).Resource(plural).Name(pod.Name).Do(ctx).Into(&found)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the snapshot of %s: %w", pod, err)
	}
	if found.IsOf(pod.UID, node) {
		pod.earlier, pod.stored = &found.Status, true
	}
	pod.read = true
	return nil
}

// CarryOver copies the last alarm, kills and stalls from an earlier agent's snapshot to the empty fields of now.
func CarryOver(earlier, now *v1alpha1.MemorySnapshotStatus) {
	if earlier == nil {
		return
	}
	if now.Alarm == nil {
		now.Alarm = earlier.Alarm
	}
	for i := range now.Containers {
		c := &now.Containers[i]
		for j := range earlier.Containers {
			b := &earlier.Containers[j]
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
