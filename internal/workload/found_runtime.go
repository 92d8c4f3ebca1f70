// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// maxEvidence bounds an agent's evidence, in bytes, as in the API.
const maxEvidence = 256

// versionFound matches the part of a detected version that a profile can declare.
var versionFound = regexp.MustCompile(`^[0-9]{1,9}([.][0-9]{1,9}){0,3}`)

// findRuntimes returns the detected runtimes of managed containers, by name. The previous result, before, remains while
// no replica of a container is inspected.
func findRuntimes(s *Snapshot, before map[string]*v1alpha1.FoundRuntime) map[string]*v1alpha1.FoundRuntime {
	if s.Template == nil || len(s.Snapshots) == 0 && len(before) == 0 {
		return nil
	}
	found := map[string]*v1alpha1.FoundRuntime{}
	for _, c := range Managed(s.Profile, s.Template) {
		f, reported := findRuntime(s, c.Name)
		if !reported {
			f = before[c.Name].DeepCopy()
		}
		if f != nil {
			f.Declared = declaredMismatch(c.policy, f)
			f.NodeHeap = nodeHeap(s, c.Name, before[c.Name], f)
			found[c.Name] = f
		}
	}
	return found
}

// findRuntime returns the runtime of the replicas with the newest inspected image; nil: unknown, or the replicas have
// different runtimes. reported is false if no replica was inspected.
func findRuntime(s *Snapshot, container string) (f *v1alpha1.FoundRuntime, reported bool) {
	image := ""
	for _, pod := range s.Governed { // newest first
		runs, spec := inspected(s, pod, container)
		if runs == nil || reported && spec.Image != image {
			continue
		}
		next := convertRuntime(runs, spec, limitOf(pod, container))
		switch {
		case next == nil || reported && next.Type != f.Type:
			return nil, true
		case !reported:
			f, reported, image = next, true, spec.Image
		default:
			f.Replicas++
			f.Version, f.Libc = ifEqual(f.Version, next.Version), ifEqual(f.Libc, next.Libc)
			f.HeapPercent = ifEqual(f.HeapPercent, next.HeapPercent)
			f.ImageVariables = union(f.ImageVariables, next.ImageVariables)
		}
	}
	return f, reported
}

// ifEqual returns the common value of a and b; zero: they differ.
func ifEqual[T comparable](a, b T) (common T) {
	if a == b {
		return a
	}
	return common
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// inspected returns the runtime of a pod's container in the agent's snapshot, and the container; nil: not inspected.
func inspected(s *Snapshot, pod *corev1.Pod, container string) (*v1alpha1.InspectedRuntime, *corev1.Container) {
	c := s.seenByAgent(pod, container)
	spec, _ := constraints.Find(pod, container)
	if c == nil || spec == nil || c.Inspection != v1alpha1.InspectionDone {
		return nil, nil
	}
	return c.Runtime, spec
}

// convertRuntime converts an agent's result to the API's type; nil: a runtime that a profile cannot declare.
func convertRuntime(r *v1alpha1.InspectedRuntime, spec *corev1.Container, limit memory.Bytes) *v1alpha1.FoundRuntime {
	row := runtimes.Lookup(r.Type)
	if row.Name != r.Type || row.Name == string(v1alpha1.RuntimeAuto) {
		return nil
	}
	f := &v1alpha1.FoundRuntime{
		Type: v1alpha1.RuntimeType(row.Name), Version: versionFound.FindString(r.Version), Image: spec.Image,
		Replicas: 1, ImageVariables: imageVariables(row, r.Variables, spec), HeapPercent: heapPercent(r, limit),
	}
	switch name, _, _ := strings.Cut(r.Libc, " "); name {
	case "glibc":
		f.Libc = v1alpha1.LibcGlibc
	case "musl":
		f.Libc = v1alpha1.LibcMusl
	}
	if len(r.Evidence) > 0 {
		f.Evidence = quote.Cut(quote.Line(r.Evidence[0]), maxEvidence)
	}
	return f
}

// heapPercent returns the heap cap that the runtime computed itself, in percent of the limit; 0: no such cap, or a cap
// above the limit. After a resize in place, the result is wrong until the container restarts.
func heapPercent(r *v1alpha1.InspectedRuntime, limit memory.Bytes) int32 {
	if r.MaxHeap == nil || r.HeapSet || limit == 0 {
		return 0
	}
	percent := math.Round(100 * float64(memory.FromQuantity(*r.MaxHeap)) / float64(limit))
	if percent < 1 || percent > 100 {
		return 0
	}
	return int32(percent)
}

// limitOf returns the effective limit of a container, which may be the pod's; 0: none.
func limitOf(pod *corev1.Pod, container string) memory.Bytes {
	spec, status := constraints.Find(pod, container)
	if spec == nil {
		return 0
	}
	limit := sizeEffective(spec, status).Limit
	if whole := constraints.WholeSize(pod).Limit; whole > 0 && (limit == 0 || whole < limit) {
		return whole
	}
	return limit
}

// imageVariables returns the environment variables with runtime settings that a process has from its image. set are the
// process's variables, without those from envFrom.
func imageVariables(row *runtimes.Runtime, set []string, spec *corev1.Container) []string {
	var all []string
	for i := range row.Knobs {
		name := row.Knobs[i].Env
		inPod := slices.ContainsFunc(spec.Env, func(e corev1.EnvVar) bool { return e.Name == name })
		if !inPod && slices.Contains(set, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// declaredMismatch describes how the detected runtime differs from the declared one; empty: equal, or none is declared.
func declaredMismatch(declared profile.Container, f *v1alpha1.FoundRuntime) string {
	spec := declared.Runtime
	if spec.Type == "" || spec.Type == v1alpha1.RuntimeAuto {
		return ""
	}
	if spec.Type == f.Type &&
		(spec.Version == "" || f.Version == "" || strings.HasPrefix(f.Version+".", spec.Version+".")) {
		return ""
	}
	runs := strings.TrimSpace(string(f.Type) + " " + f.Version)
	wanted := strings.TrimSpace(string(spec.Type) + " " + spec.Version)
	return fmt.Sprintf("%s declares %s, but replicas run %s (%s): correct the declaration, or set runtime.type: Auto to "+
		"use the detected runtime", cmp.Or(declared.RuntimeDeclaredBy, "the profile"), wanted, runs, f.Evidence)
}

// nodeHeap returns the highest maximum heap above the memory limit that a replica chose without an option; nil: none.
// Without data from such replicas, as with -XX:MaxRAM, an earlier result for the same image repository remains.
func nodeHeap(s *Snapshot, container string, before, now *v1alpha1.FoundRuntime) *resource.Quantity {
	var most *resource.Quantity
	detectsLimit := false
	for _, pod := range s.Governed {
		runs, spec := inspected(s, pod, container)
		if runs == nil || runs.Type != string(now.Type) {
			continue
		}
		heap, limit := heapAndLimit(runs, pod, spec)
		switch {
		case heap == 0 || limit == 0:
		case heap <= limit.Plus(limit/heapSlack):
			detectsLimit = true
		case most == nil || heap > amount(*most):
			most = new(heap.Quantity())
		}
	}
	if most != nil || detectsLimit || before == nil || before.NodeHeap == nil || before.Type != now.Type ||
		!inject.SameRepository(before.Image, now.Image) {
		return most
	}
	return new(before.NodeHeap.DeepCopy())
}

// heapSlack: a heap may exceed the limit by up to an eighth, because the JVM rounds it up to whole regions.
const heapSlack = 8

// heapAndLimit returns the maximum heap that a process chose itself, and the limit at its start; 0: unknown, for
// example after a resize.
func heapAndLimit(runs *v1alpha1.InspectedRuntime, pod *corev1.Pod, spec *corev1.Container) (heap, limit memory.Bytes) {
	if runs.MaxHeap == nil || runs.HeapSet || inject.WasResized(pod) {
		return 0, 0
	}
	return amount(*runs.MaxHeap), limitOf(pod, spec.Name)
}

// reportNodeHeaps adds an advisory for each container whose JVM does not detect its limit.
func (d *decider) reportNodeHeaps() {
	for i := range d.out.status.Containers {
		c := &d.out.status.Containers[i]
		if f := c.FoundRuntime; f != nil && f.NodeHeap != nil {
			text := fmt.Sprintf("Container %s: the maximum heap is %s, above the memory limit, because the JVM does not "+
				"detect the limit (JDK-8349988, kernels without CONFIG_MEMCG_V1). Upgrade the JDK. Until then, set heapPercent "+
				"in the profile (new pods then get -XX:MaxRAM), or add -XX:MaxRAM to your own options",
				c.Container, amount(*f.NodeHeap))
			d.out.status.Advisories = append([]string{text}, d.out.status.Advisories...)
		}
	}
}
