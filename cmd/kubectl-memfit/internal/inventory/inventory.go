// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
	"github.com/memfit/memfit/internal/suggest"
)

// Input is what was read of a cluster.
type Input struct {
	// Cluster is its name, where several were asked.
	Cluster         string
	Pods            []corev1.Pod
	Snapshots       []v1alpha1.MemorySnapshot
	Recommendations []v1alpha1.MemoryRecommendation
	// Used is the working set of containers, where metrics.k8s.io is served.
	Used map[Key]memory.Bytes
}

// Key names a container of a pod.
type Key struct{ Namespace, Pod, Container string }

// Source says where an answer is from.
type Source string

// The sources, the surest first.
const (
	FromAgent   Source = "agent"
	FromProfile Source = "profile"
	FromMetrics Source = "metrics.k8s.io"
	FromSpec    Source = "suggested"
)

// Container is what is known of one running container. They are the items of
// `kubectl memfit top -o json`.
type Container struct {
	// Cluster is the kubeconfig's context, where several were asked.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Name      string `json:"container"`
	Node      string `json:"node,omitempty"`
	// Kind and Workload are whose pod it is.
	Kind     string `json:"workloadKind"`
	Workload string `json:"workload"`
	// Profile governs the workload; empty: none.
	Profile string  `json:"profile,omitempty"`
	Runtime Runtime `json:"runtime,omitzero"`
	// Use is the demand, what the kernel cannot reclaim (from the agent), or the working set (from metrics.k8s.io).
	Use     *resource.Quantity `json:"use,omitempty"`
	UseFrom Source             `json:"useFrom,omitempty"`
	Limit   *resource.Quantity `json:"limit,omitempty"`
	// Parts add up to what is resident; nil: nobody looked inside, and Missing says why.
	Parts   *Parts `json:"parts,omitempty"`
	Missing string `json:"missing,omitempty"`
	// LastKill is the last OOM kill that the pod or its snapshot tells of.
	LastKill *metav1.Time `json:"lastKill,omitempty"`

	// kills that are told of; there may have been more.
	kills int
	// own: it is memfit's, whose webhook leaves it alone.
	own bool
}

// Runtime is what runs in a container.
type Runtime struct {
	// Type is as runtime.type of a profile has it, Title as people say it.
	Type     string   `json:"type,omitempty"`
	Title    string   `json:"title,omitempty"`
	Version  string   `json:"version,omitempty"`
	From     Source   `json:"from,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
}

// Parts sum up what is resident. Free is resident and holds nothing; the others are without it.
type Parts struct {
	// Heap is what the runtime manages, garbage that was not collected included.
	Heap   resource.Quantity `json:"heap"`
	Free   resource.Quantity `json:"free"`
	Native resource.Quantity `json:"native"`
	// Files are pages of programs, libraries and other files, and what processes share.
	Files       resource.Quantity `json:"files"`
	Unexplained resource.Quantity `json:"unexplained"`
}

// Containers are those of all pods that run, in the order of the pods.
func Containers(in Input) []Container {
	snapshots := map[Key]*v1alpha1.ContainerSnapshot{}
	seen := map[Key]string{} // the node whose agent wrote it
	for i := range in.Snapshots {
		s := &in.Snapshots[i]
		seen[Key{s.Namespace, s.Name, ""}] = s.Status.NodeName
		for j := range s.Status.Containers {
			snapshots[Key{s.Namespace, s.Name, s.Status.Containers[j].Container}] = &s.Status.Containers[j]
		}
	}
	recommendations := byWorkload(in.Recommendations)
	var out []Container
	for i := range in.Pods {
		pod := &in.Pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		kind, name := owner(pod)
		rec := recommendations[Ref{pod.Namespace, kind, name}]
		for _, spec := range running(pod) {
			key := Key{pod.Namespace, pod.Name, spec.Name}
			c := Container{
				Cluster:   in.Cluster,
				Namespace: pod.Namespace, Pod: pod.Name, Name: spec.Name, Node: pod.Spec.NodeName, Kind: kind, Workload: name,
				own: pod.Labels["app.kubernetes.io/name"] == "memfit",
			}
			c.fromSpec(spec, pod)
			c.fromRecommendation(rec)
			c.fromMetrics(in.Used[key])
			if from := seen[Key{pod.Namespace, pod.Name, ""}]; from != "" && from == pod.Spec.NodeName {
				c.fromSnapshot(snapshots[key], true)
			} else { // another node's agent may write under the name of any pod
				c.fromSnapshot(nil, false)
			}
			out = append(out, c)
		}
	}
	return out
}

// running are the containers that stay: sidecars among the init containers, and the others.
func running(pod *corev1.Pod) (out []*corev1.Container) {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return out
}

func (c *Container) fromSpec(spec *corev1.Container, pod *corev1.Pod) {
	if limit, ok := spec.Resources.Limits[corev1.ResourceMemory]; ok {
		c.Limit = &limit
	}
	var variables []string
	wrote := inject.Wrote(pod, spec.Name)
	for i := range spec.Env {
		if name := spec.Env[i].Name; !slices.Contains(wrote, name) { // what memfit set says nothing of what runs
			variables = append(variables, name)
		}
	}
	s := suggest.For(
		suggest.Container{Image: spec.Image, Command: spec.Command, Args: spec.Args, Variables: variables},
	)
	if s.Runtime != nil {
		c.Runtime = Runtime{
			Type: s.Runtime.Name, Title: s.Runtime.Title, Version: s.Version, From: FromSpec, Evidence: s.Evidence,
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == spec.Name {
			c.killed(status.LastTerminationState.Terminated)
			c.killed(status.State.Terminated)
		}
	}
}

func (c *Container) killed(t *corev1.ContainerStateTerminated) {
	if t != nil && t.Reason == "OOMKilled" {
		c.kill(t.FinishedAt)
	}
}

func (c *Container) kill(at metav1.Time) {
	c.kills++
	if c.LastKill == nil || at.After(c.LastKill.Time) {
		c.LastKill = &at
	}
}

// fromRecommendation takes what memfit was told of the container. Its text says how it is known.
func (c *Container) fromRecommendation(rec *v1alpha1.MemoryRecommendation) {
	if rec == nil {
		return
	}
	c.Profile = rec.Spec.Profile.Name
	for i := range rec.Status.Containers {
		r := &rec.Status.Containers[i]
		if r.Container != c.Name || !strings.Contains(r.Runtime, "(declared by") {
			continue
		}
		title, how, _ := strings.Cut(r.Runtime, " (")
		known := Runtime{Title: title, From: FromProfile, Evidence: []string{strings.TrimSuffix(how, ")")}}
		for _, row := range runtimes.All() {
			if rest, ok := strings.CutPrefix(title, row.Title); ok && (rest == "" || rest[0] == ' ') {
				known.Type, known.Title, known.Version = row.Name, row.Title, strings.TrimSpace(rest)
			}
		}
		c.Runtime = known
	}
}

func (c *Container) fromMetrics(used memory.Bytes) {
	if used > 0 {
		q := used.Quantity()
		c.Use, c.UseFrom = &q, FromMetrics
	}
}

// fromSnapshot takes what the agent found. exists: the pod has a snapshot, in which this container may be missing.
func (c *Container) fromSnapshot(s *v1alpha1.ContainerSnapshot, exists bool) {
	if s == nil {
		c.Missing = "no snapshot: no agent runs on its node, or it has not inspected the pod yet"
		if exists {
			c.Missing = "not in its pod's snapshot yet"
		}
		return
	}
	if s.Demand != nil {
		c.Use, c.UseFrom = s.Demand, FromAgent
	}
	if s.Limit != nil {
		c.Limit = s.Limit
	}
	if r := s.Runtime; r != nil {
		c.Runtime = Runtime{
			Type: r.Type, Title: runtimes.TitleOf(r.Type), Version: r.Version, From: FromAgent, Evidence: r.Evidence,
		}
	}
	if k := s.LastKill; k != nil && (c.LastKill == nil || k.Time.Sub(c.LastKill.Time).Abs() > sameKill) {
		c.kill(k.Time)
	}
	if s.Memory == nil {
		c.Missing = notInspected(s)
		return
	}
	c.Parts = partsOf(s.Memory)
}

// notInspected says why an agent did not look inside.
func notInspected(s *v1alpha1.ContainerSnapshot) string {
	switch {
	case s.Inspection == v1alpha1.InspectionNotEnabled:
		return "the agent runs at tier Watch, which does not look inside"
	case s.Inspection == v1alpha1.InspectionDeclined:
		return "the pod refuses inspection (annotation " + v1alpha1.InspectAnnotation + ")"
	case s.InspectionMessage != "":
		return "it could not be inspected: " + clean(s.InspectionMessage)
	}
	return "it has not been inspected yet"
}

// sameKill is how far apart agent and kubelet may notice one kill.
const sameKill = time.Minute

func partsOf(m *v1alpha1.MemoryParts) *Parts {
	sums, free := map[v1alpha1.PartGroup]memory.Bytes{}, memory.Bytes(0)
	named := memory.Bytes(0)
	for i := range m.Parts {
		p := &m.Parts[i]
		size := memory.FromQuantity(p.Resident)
		idle := memory.Bytes(0)
		if p.Free != nil {
			idle = min(memory.FromQuantity(*p.Free), size)
		}
		sums[p.Group], free, named = sums[p.Group].Plus(size.Minus(idle)), free.Plus(idle), named.Plus(size)
	}
	return &Parts{
		Heap: sums[v1alpha1.PartHeap].Quantity(), Free: free.Quantity(),
		Native: sums[v1alpha1.PartNative].Quantity(),
		Files:  sums[v1alpha1.PartFiles].Plus(sums[v1alpha1.PartShared]).Quantity(),
		// A part without a group is explained by its name, and not by what it is for.
		Unexplained: max(memory.FromQuantity(m.Unexplained), memory.FromQuantity(m.Resident).Minus(named)).
			Plus(sums[""]).Quantity(),
	}
}
