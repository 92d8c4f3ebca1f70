// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxTemplates limits the shared templates; it suffices for all owners that create pods at the same time.
	maxTemplates = 4096
	// maxLists limits the shared memory amounts; clusters use a few dozen.
	maxLists = 4096
)

// interner shares equal parts of cached pods: replicas differ in name and status only, and memory amounts repeat.
type interner struct {
	mu        sync.Mutex
	templates map[types.UID]*template
	lists     map[amount]corev1.ResourceList
}

// template has the parts of a pod that come from its owner's template.
type template struct {
	labels, annotations map[string]string
	init, containers    []corev1.Container
	volumes             []corev1.Volume
}

type amount struct {
	bytes  int64
	format resource.Format
}

var shared = &interner{templates: map[types.UID]*template{}, lists: map[amount]corev1.ResourceList{}}

// template replaces parts of a slim pod with equal parts of its owner's previous pod.
func (s *interner) template(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found := s.templates[owner.UID]
	if !found {
		if len(s.templates) >= maxTemplates {
			clear(s.templates) // existing sharing is unaffected
		}
		t = &template{}
		s.templates[owner.UID] = t
	}
	share(&pod.Labels, t.labels)
	share(&pod.Annotations, t.annotations)
	share(&pod.Spec.InitContainers, t.init)
	share(&pod.Spec.Containers, t.containers)
	share(&pod.Spec.Volumes, t.volumes)
	// The owner's next pod will most likely equal this one.
	*t = template{
		labels: pod.Labels, annotations: pod.Annotations, init: pod.Spec.InitContainers, containers: pod.Spec.Containers,
		volumes: pod.Spec.Volumes,
	}
}

// share replaces *part with known if both are equal.
func share[T any](part *T, known T) {
	if equality.Semantic.DeepEqual(known, *part) {
		*part = known
	}
}

// internLabels returns a copy of labels with interned strings.
func internLabels(labels map[string]string) map[string]string {
	interned := make(map[string]string, len(labels))
	for key, value := range labels {
		interned[unique.Make(key).Value()] = unique.Make(value).Value()
	}
	return interned
}

// memory returns a list with only the memory entry. Equal amounts share a list: it takes 700 bytes, and every container
// has four, in spec and status.
func (s *interner) memory(list corev1.ResourceList) corev1.ResourceList {
	q, found := list[corev1.ResourceMemory]
	if !found {
		return nil
	}
	bytes, exact := q.AsInt64()
	if !exact {
		return corev1.ResourceList{corev1.ResourceMemory: q}
	}
	key := amount{bytes, q.Format}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, known := s.lists[key]; known {
		return l
	}
	if len(s.lists) >= maxLists {
		clear(s.lists)
	}
	l := corev1.ResourceList{corev1.ResourceMemory: q}
	s.lists[key] = l
	return l
}
