// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// MemoryVolume is an emptyDir volume with medium Memory (tmpfs). When the pod starts, the kubelet sets its size to the
// least of sizeLimit, the pod's memory limit and the node's allocatable memory. A resize of the pod does not change
// that size (calculateEmptyDirMemorySize and RequiresRemount in pkg/volume/emptydir, Kubernetes 1.36).
type MemoryVolume struct {
	Name      string
	SizeLimit memory.Bytes // the volume's sizeLimit; 0: it has none
}

// MemoryVolumes returns the memory-backed volumes that a container of the pod can write to, in the order of the pod's
// volumes. The kernel charges their contents to the container that wrote them.
func MemoryVolumes(pod *corev1.Pod, c *corev1.Container) (out []MemoryVolume) {
	var writable map[string]bool
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !isMemory(v) {
			continue
		}
		if writable == nil {
			writable = make(map[string]bool, len(c.VolumeMounts))
			for j := range c.VolumeMounts {
				m := &c.VolumeMounts[j]
				writable[m.Name] = writable[m.Name] || !m.ReadOnly
			}
		}
		if writable[v.Name] {
			// the kubelet ignores a limit that is not above 0
			out = append(out, MemoryVolume{Name: v.Name, SizeLimit: memory.FromOptional(v.EmptyDir.SizeLimit)})
		}
	}
	return out
}

// VolumesCapacity returns the capacity of a container's memory-backed volumes: the sum of their size limits. A volume
// without a size limit counts 0, because its capacity depends on the limit itself.
func VolumesCapacity(pod *corev1.Pod, c *corev1.Container) memory.Bytes {
	var sum memory.Bytes
	for _, v := range MemoryVolumes(pod, c) {
		sum = sum.Plus(v.SizeLimit)
	}
	return sum
}

func isMemory(v *corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory
}

// checkVolumes warns about memory-backed volumes without a size limit, if memfit uses the container's limit.
func (c *ContainerPlan) checkVolumes(pod *corev1.Pod, t target) {
	var names []string
	for _, v := range MemoryVolumes(pod, t.container) {
		if v.SizeLimit == 0 {
			names = append(names, shorten(v.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	have := "volume " + names[0] + " (medium Memory) has"
	if len(names) > 1 {
		have = "volumes " + joinFirst(names, ", ") + " (medium Memory) have"
	}
	if t.policy.Sizing.Mode.SizesNewPods() {
		c.warned = append(c.warned, warning{ofPod: true, text: have + " no sizeLimit: the kubelet derives the size from " +
			"the limit when the pod starts, and a resize does not change it: set emptyDir.sizeLimit"})
		return
	}
	text := have + " no sizeLimit and may fill the whole limit, and settings leave no memory for that: " +
		"set emptyDir.sizeLimit"
	switch {
	case c.mode == v1alpha1.TuningDisabled:
	case slices.ContainsFunc(c.set, func(s setting) bool { return s.knob.Follows != "" }):
		c.warned = append(c.warned, warning{ofPod: true, text: text})
	default:
		c.advise(text)
	}
}

// checkShares warns about containers without their own limits whose heap caps add up to more than the pod's limit. It
// does not divide the limit among them, which would make the largest heap too small.
func (p *Plan) checkShares(pod *corev1.Pod, whole memory.Bytes) {
	if whole == 0 || len(pod.Spec.Containers) < 2 {
		return
	}
	var heaps memory.Bytes
	var names []string
	for i := range p.containers {
		if c := &p.containers[i]; c.sharesPodLimit {
			if heap := c.heapSet(); heap > 0 {
				heaps, names = heaps.Plus(heap), append(names, c.name)
			}
		}
	}
	over := len(names) > 1 && heaps > whole
	for i := range p.containers {
		c := &p.containers[i]
		switch {
		case !c.sharesPodLimit || c.mode == v1alpha1.TuningDisabled:
		case over && slices.Contains(names, c.name):
			c.warned = append(c.warned, warning{ofPod: true, text: fmt.Sprintf("the heap caps of containers %s add up to %s, "+
				"above the pod's memory limit of %s, which they share: give each a memory limit of its own, or lower heapPercent",
				joinFirst(names, ", "), heaps.CeilTo(memory.MiB), whole)})
		default:
			c.advise(fmt.Sprintf("it shares the pod's limit of %s with the pod's other containers, and each may fill it: "+
				"give it a limit of its own", whole))
		}
	}
}

// heapSet returns the planned heap cap of all processes together; 0: none.
func (c *ContainerPlan) heapSet() memory.Bytes {
	s := c.heapSetting()
	if s == nil {
		return 0
	}
	word := s.verdict.Value
	if s.knob.List == nil {
		word = s.assignment()
	}
	return s.runtime.CollectAt([]string{word}, c.limit.cgroup) * c.limit.division.parts()
}

// WasResized reports whether a pod was resized since its creation, by the managed fields, which the cache keeps. The
// generation also changes with a debug session (kubectl debug) or another image.
func WasResized(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "resize"
	})
}

// LimitMoved reports whether the settings of a running container were derived from a limit other than its current one.
func LimitMoved(pod *corev1.Pod, n *profile.Profile) bool {
	p := OfRunning(pod, n, nil)
	return slices.ContainsFunc(p.containers, func(c ContainerPlan) bool {
		return c.edit.Env != nil && c.before.atAdmission() != c.limit.effective
	})
}

// RaisedInPlace reports whether a container's effective limit is higher than at the creation of its running pod. If the
// limit at creation is unknown, any resize counts.
func RaisedInPlace(pod *corev1.Pod, n *profile.Profile, container string) bool {
	if !WasResized(pod) {
		return false
	}
	created := readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(container).atAdmission()
	return created == 0 || OfRunning(pod, n, nil).Container(container).limit.effective > created
}
