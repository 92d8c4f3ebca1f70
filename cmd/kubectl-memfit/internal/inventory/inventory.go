// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory lists the containers of a cluster with their memory, for `kubectl memfit top` ([Container]) and
// `kubectl memfit scan` ([Workload]). It also finds the recommendation of a pod ([Records]), computes how much memfit
// has lowered requests ([Savings]), and writes profiles for workloads without a profile ([Profiles]). It is pure.
//
// The runtime of a container is from the agent, otherwise from the profile, otherwise suggested by image and command.
package inventory

import (
	"iter"
	"slices"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
	"github.com/memfit/memfit/internal/suggest"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Inventory collects data about the running containers of a cluster. It keeps only what the lists print, because a
// cluster may have a hundred thousand pods. Add pods, then metrics, then snapshots: later data replaces earlier data.
type Inventory struct {
	records    Records
	containers []Container
	pods       map[types.NamespacedName]pod
}

// pod locates the containers of a pod.
type pod struct {
	first int       // index of its first container in Inventory.containers
	uid   types.UID // its snapshot must have the same
}

// New returns an inventory without pods.
func New(records Records) *Inventory {
	return &Inventory{records: records, pods: map[types.NamespacedName]pod{}}
}

// Source is the source of a runtime or of memory use.
type Source string

// The sources, the most certain first.
const (
	FromAgent   Source = "agent"
	FromProfile Source = "profile"
	FromMetrics Source = "metrics.k8s.io"
	FromSpec    Source = "suggested"
)

// Container describes one running container. The items of `kubectl memfit top -o json` have these fields.
type Container struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Name      string `json:"container"`
	Node      string `json:"node,omitempty"`
	// Kind and Workload are the kind and the name of the pod's workload.
	Kind     string `json:"workloadKind"`
	Workload string `json:"workload"`
	// NodeClass is the class of nodes of a DaemonSet's pod; empty: the DaemonSet has no classes.
	NodeClass string `json:"nodeClass,omitempty"`
	// Profile is the profile that governs the workload; empty: none.
	Profile string  `json:"profile,omitempty"`
	Runtime Runtime `json:"runtime,omitzero"`
	// Use is the demand (from the agent), or the working set (from metrics.k8s.io).
	Use     *resource.Quantity `json:"use,omitempty"`
	UseFrom Source             `json:"useFrom,omitempty"`
	Limit   *resource.Quantity `json:"limit,omitempty"`
	// Parts are the parts of the resident memory; nil: not inspected.
	Parts *Parts `json:"parts,omitempty"`
	// Missing is the reason why Parts is nil.
	Missing string `json:"missing,omitempty"`
	// LastKill is the last OOM kill that the pod or its snapshot reports.
	LastKill *metav1.Time `json:"lastKill,omitempty"`

	// group is the API group of Kind; empty: the core group.
	group string
	// kills is the number of reported kills, a lower bound.
	kills int
	// own is true for containers of memfit itself, which the webhook ignores.
	own bool
	// rec is the recommendation of the workload, or of its node class; nil: none.
	rec *v1alpha1.MemoryRecommendation
}

// Runtime is the runtime of a container.
type Runtime struct {
	// Type is the name in profiles (runtime.type), and Title the name for users.
	Type     string   `json:"type,omitempty"`
	Title    string   `json:"title,omitempty"`
	Version  string   `json:"version,omitempty"`
	From     Source   `json:"from,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
}

func runtimeOf(name, version string, from Source, evidence ...string) Runtime {
	return Runtime{Type: name, Title: runtimes.TitleOf(name), Version: version, From: from, Evidence: evidence}
}

// Parts divide resident memory. Free is unused memory; the other fields exclude it.
type Parts struct {
	// Heap is the runtime's heap, including garbage.
	Heap   resource.Quantity `json:"heap"`
	Free   resource.Quantity `json:"free"`
	Native resource.Quantity `json:"native"`
	// Files are pages of programs, libraries and other files, and shared memory.
	Files       resource.Quantity `json:"files"`
	Unexplained resource.Quantity `json:"unexplained"`
}

// AddPod adds the containers of a pod, unless the pod has ended.
func (in *Inventory) AddPod(p *corev1.Pod) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	at := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if _, added := in.pods[at]; added {
		return
	}
	in.pods[at] = pod{len(in.containers), p.UID}
	ref := in.records.workload(p)
	for _, spec := range running(p) {
		c := Container{
			Namespace: shared(p.Namespace), Pod: p.Name, Name: shared(spec.Name), Node: shared(p.Spec.NodeName),
			Kind: shared(ref.Kind), Workload: shared(ref.Name), NodeClass: shared(ref.NodeClass), Missing: report.NoSnapshot,
			group: shared(ref.Group), own: p.Labels["app.kubernetes.io/name"] == "memfit", rec: in.records.Of(ref),
		}
		c.fromSpec(spec, p)
		c.fromRecommendation(in.records.Any(ref))
		in.containers = append(in.containers, c)
	}
}

// shared interns a text that many pods have, to save memory.
func shared(text string) string { return unique.Make(text).Value() }

// typed returns the workload for users: "deployment/web", "daemonset/log [m5.large]".
func (c *Container) typed() string {
	return identity.OnNodes(workloadkind.Typed(c.Kind, c.Workload), c.NodeClass)
}

// AddUse sets the use of a container to its working set.
func (in *Inventory) AddUse(namespace, pod, container string, used memory.Bytes) {
	for c := range in.of(namespace, pod) {
		if c.Name == container && used > 0 {
			c.Use, c.UseFrom = new(used.Quantity()), FromMetrics
		}
	}
}

// AddSnapshot adds the data of a snapshot, unless it is from an earlier pod with the same name or from another node.
func (in *Inventory) AddSnapshot(s *v1alpha1.MemorySnapshot) {
	uid := in.pods[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}].uid
	for c := range in.of(s.Namespace, s.Name) {
		if !s.IsOf(uid, c.Node) {
			continue
		}
		c.Missing = "not in the pod's snapshot yet: " + report.FirstInspection
		for i := range s.Status.Containers {
			if s.Status.Containers[i].Container == c.Name {
				c.fromSnapshot(&s.Status.Containers[i])
			}
		}
	}
}

// of yields the containers of a pod.
func (in *Inventory) of(namespace, pod string) iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		p, known := in.pods[types.NamespacedName{Namespace: namespace, Name: pod}]
		for at := p.first; known && at < len(in.containers); at++ {
			c := &in.containers[at]
			if c.Namespace != namespace || c.Pod != pod || !yield(c) {
				return
			}
		}
	}
}

// Containers returns the containers of all pods, in the order of AddPod.
func (in *Inventory) Containers() []Container { return in.containers }

// running returns the sidecars and the app containers.
func running(pod *corev1.Pod) (out []*corev1.Container) {
	for c, initial := range constraints.Containers(&pod.Spec) {
		if !initial || constraints.Sidecar(c) {
			out = append(out, c)
		}
	}
	return out
}

func (c *Container) fromSpec(spec *corev1.Container, pod *corev1.Pod) {
	if limit, ok := spec.Resources.Limits[corev1.ResourceMemory]; ok {
		c.Limit = &limit
	}
	var variables []string
	wrote := inject.WrittenVariables(pod, spec.Name)
	for i := range spec.Env {
		if name := spec.Env[i].Name; !slices.Contains(wrote, name) { // omit variables that memfit set
			variables = append(variables, name)
		}
	}
	s := suggest.For(spec.Image, slices.Concat(spec.Command, spec.Args), variables)
	if s.Runtime != nil {
		c.Runtime = runtimeOf(s.Runtime.Name, s.Version, FromSpec, s.Evidence...)
	}
	_, status := constraints.Find(pod, spec.Name)
	if status == nil {
		return
	}
	for _, state := range []corev1.ContainerState{status.LastTerminationState, status.State} {
		if t := state.Terminated; t != nil && t.Reason == "OOMKilled" {
			c.kill(t.FinishedAt)
		}
	}
}

func (c *Container) kill(at metav1.Time) {
	c.kills++
	if c.LastKill == nil || at.After(c.LastKill.Time) {
		c.LastKill = &at
	}
}

func (c *Container) fromRecommendation(rec *v1alpha1.MemoryRecommendation) {
	if rec == nil {
		return
	}
	c.Profile = shared(rec.Status.Profile.Name)
	for i := range rec.Status.Containers {
		r := &rec.Status.Containers[i]
		if id := r.Identity; r.Container == c.Name && id != nil && id.Source == v1alpha1.RuntimeDeclared {
			c.Runtime = runtimeOf(string(id.Type), id.Version, FromProfile, id.Evidence)
		}
	}
}

func (c *Container) fromSnapshot(s *v1alpha1.ContainerSnapshot) {
	c.Missing = ""
	if s.Demand != nil {
		c.Use, c.UseFrom = s.Demand, FromAgent
	}
	if s.Limit != nil {
		c.Limit = s.Limit
	}
	if r := s.Runtime; r != nil {
		c.Runtime = runtimeOf(r.Type, r.Version, FromAgent, r.Evidence...)
	}
	if k := s.LastKill; k != nil && (c.LastKill == nil || k.Time.Sub(c.LastKill.Time).Abs() > sameKill) {
		c.kill(k.Time)
	}
	if s.Memory == nil {
		c.Missing = quote.Plain(report.NotInspected(s))
		return
	}
	c.Parts = partsOf(s.Memory)
}

// sameKill is the maximum time between the reports of the same kill by agent and kubelet.
const sameKill = time.Minute

func partsOf(m *v1alpha1.MemoryParts) *Parts {
	sums, free := map[v1alpha1.PartGroup]memory.Bytes{}, memory.Bytes(0)
	for i := range m.Parts {
		p := &m.Parts[i]
		size, idle := report.PartSize(p)
		sums[p.Group], free = sums[p.Group].Plus(size.Minus(idle)), free.Plus(idle)
	}
	return &Parts{
		Heap: sums[v1alpha1.PartHeap].Quantity(), Free: free.Quantity(),
		Native: sums[v1alpha1.PartNative].Quantity(),
		Files:  sums[v1alpha1.PartFiles].Plus(sums[v1alpha1.PartShared]).Quantity(),
		// Parts without a group count as unexplained.
		Unexplained: report.Unexplained(m).Plus(sums[""]).Quantity(),
	}
}
