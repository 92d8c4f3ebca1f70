// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/htmlreport"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workload"
)

// row is a second of a recording, which represents a minute (test/recordings/README.md).
type row struct {
	at       time.Time
	instance int32
	limit    memory.Bytes
	anon     memory.Bytes
}

// began is the start of a replay, fixed so that the same recording gives the same page.
var began = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

const (
	namespace, name, container, podName = "preview", "recorded", "app", "recorded-0"

	decideEvery = 5 * time.Minute // between two decisions without a kill
)

// replay prints memfit's decisions during the recording, and writes the report at its end.
func replay(w io.Writer, manifests, recording, page string) error {
	rows, err := read(recording)
	if err != nil {
		return err
	}
	r := replayed{w: w, state: workload.NewState(), history: history.New(), pod: podOf(rows[0])}
	if err := r.setOwner(manifests); err != nil {
		return err
	}
	for _, row := range rows {
		r.minute(row)
	}
	rec := v1alpha1.MemoryRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(r.owner.Ref.Kind) + "-" + name},
		Status:     r.last.Status,
	}
	fmt.Fprintf(w, "\n  %s\n", rec.Status.Summary)
	for _, next := range report.Rows([]v1alpha1.MemoryRecommendation{rec})[0].Next {
		fmt.Fprintf(w, "  Next: %s\n", next)
	}
	fmt.Fprint(w, "\nLearn: memfit counts each kill once, with its limit, and reports a leak with the time left.\n")
	return r.write(page, rec, rows[len(rows)-1].at)
}

// replayed is the manager's state of a workload with one pod.
type replayed struct {
	w       io.Writer
	state   *workload.State
	owner   memory.Workload
	history *history.Container
	profile *profile.Profile
	pod     *corev1.Pod
	last    workload.Effects
	stepped time.Time
	samples []memory.Sample
}

func (r *replayed) minute(row row) {
	killed := row.instance > r.pod.Status.ContainerStatuses[0].RestartCount
	if killed {
		r.restart(row)
	}
	status := &r.pod.Status.ContainerStatuses[0]
	sample := memory.Sample{
		Container: memory.ContainerRef{Namespace: namespace, Pod: podName, UID: r.pod.UID, Container: container},
		Time:      row.at, Started: status.State.Running.StartedAt.Time,
		Usage: row.anon, RSS: row.anon, WorkingSet: row.anon, HasRSS: true,
	}
	r.samples = append(r.samples, sample)
	r.history.Add(sample, row.limit)
	if killed || row.at.Sub(r.stepped) >= decideEvery {
		r.step(row.at)
	}
}

// restart records that the kernel killed the container, and that the next instance started.
func (r *replayed) restart(row row) {
	status := &r.pod.Status.ContainerStatuses[0]
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", ExitCode: 137, ContainerID: status.ContainerID,
		StartedAt: status.State.Running.StartedAt, FinishedAt: metav1.NewTime(row.at),
	}
	status.RestartCount, status.ContainerID = row.instance, fmt.Sprintf("containerd://%d", row.instance)
	status.State.Running.StartedAt = metav1.NewTime(row.at)
}

func (r *replayed) step(now time.Time) {
	pod := r.pod.DeepCopy()
	s := &workload.Snapshot{
		Owner:   r.owner,
		Profile: r.profile, Pods: []*corev1.Pod{pod}, Governed: []*corev1.Pod{pod}, Template: pod,
		Events: workload.PendingEvents{Observations: oom.Observe(pod), Samples: r.samples, Source: "kubelet"},
	}
	before := r.last.Status.Summary
	r.state, r.last = workload.Step(r.state, s, now)
	r.samples, r.stepped = nil, now
	for i := range r.last.Events {
		e := &r.last.Events[i]
		fmt.Fprintf(r.w, "  %s  %s: %s\n", now.Format("15:04"), e.Reason, e.Note)
	}
	if after := r.last.Status.Summary; len(r.last.Events) == 0 && decisionOf(before) != decisionOf(after) {
		fmt.Fprintf(r.w, "  %s  %s\n", now.Format("15:04"), after)
	}
}

// decisionOf returns the start of a summary, because the numbers in the rest change with every sample.
func decisionOf(summary string) string {
	decision, _, _ := strings.Cut(summary, ":")
	return decision
}

func (r *replayed) write(page string, rec v1alpha1.MemoryRecommendation, now time.Time) error {
	var html bytes.Buffer
	err := htmlreport.Write(&html, &htmlreport.Input{
		Place: "a recorded process", Now: now, Recommendations: []v1alpha1.MemoryRecommendation{rec},
		Histories: map[types.NamespacedName]map[string]*history.Container{
			{Namespace: namespace, Name: rec.Name}: {container: r.history},
		},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(page), 0o750); err != nil {
		return err
	}
	return os.WriteFile(page, html.Bytes(), 0o600)
}

// setOwner makes the demo's Node.js service the owner of the pod, and sets its profile.
func (r *replayed) setOwner(manifests string) error {
	var service metav1.TypeMeta
	var p v1alpha1.MemoryProfile
	if err := errors.Join(first(manifests, "bursts.yaml", &service), first(manifests, "profiles.yaml", &p)); err != nil {
		return err
	}
	r.owner = memory.Workload{UID: name, Ref: memory.WorkloadRef{
		APIVersion: service.APIVersion, Kind: service.Kind, Namespace: namespace, Name: name,
	}}
	p.Namespace, p.Generation = namespace, 1
	r.profile = new(profile.Of(&p))
	return nil
}

// first reads the first object of a manifest of the demo.
func first(dir, name string, into any) error {
	text, err := fs.ReadFile(os.DirFS(dir), name)
	if err != nil {
		return err
	}
	object, _, _ := strings.Cut(string(text), "\n---\n")
	return yaml.Unmarshal([]byte(object), into)
}

// podOf returns the pod of the recorded process.
func podOf(begin row) *corev1.Pod {
	limit := resource.NewQuantity(int64(begin.limit), resource.BinarySI)
	sizes := corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: *limit},
		Requests: corev1.ResourceList{corev1.ResourceMemory: *limit},
	}
	start := metav1.NewTime(began)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, UID: podName, CreationTimestamp: start},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "node:20", Resources: sizes}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start, ContainerStatuses: []corev1.ContainerStatus{{
			Name: container, ContainerID: "containerd://0", Ready: true, Resources: &sizes,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
		}}},
	}
}

// read reads the first replica of a recording.
func read(path string) (rows []row, err error) {
	file, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(unpacked).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) < 2 || strings.Join(lines[0][:6], ",") != "second,replica,instance,limit_mib,cap_mib,anon_kib" {
		return nil, fmt.Errorf("%s is not a recording: see test/recordings/README.md", path)
	}
	for _, line := range lines[1:] {
		var numbers [6]int64
		for i := range numbers {
			if numbers[i], err = strconv.ParseInt(line[i], 10, 64); err != nil {
				return nil, err
			}
		}
		if numbers[1] == 0 {
			rows = append(rows, row{
				at:       began.Add(time.Duration(numbers[0]) * time.Minute),
				instance: int32(numbers[2]), //nolint:gosec // counts restarts
				limit:    memory.Bytes(numbers[3]) * memory.MiB, anon: memory.Bytes(numbers[5]) * memory.KiB,
			})
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no replica 0", path)
	}
	return rows, nil
}
