// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Pod is what is kept of a pod.
type Pod struct {
	types.NamespacedName

	UID types.UID
	// Declined: the owner of the pod does not want its processes to be inspected.
	Declined bool
	// Asked is the value of the annotation that requests an inspection; another value requests another one, "" none.
	Asked string
	// Drawn: a map of the pod's pages is requested.
	Drawn      bool
	Containers []Container
}

// Container is what is kept of a container.
type Container struct {
	Name string
	ID   string // of the instance that runs or ran last, as its cgroup has it; "" before the first
	// Killed are the instances that the kubelet reports as OOM-killed, as far as the status keeps them: one or two.
	Killed []End
}

// End is how an instance ended.
type End struct {
	ID string
	At time.Time
	// Exited: its main process was not killed. The kubelet's reason then concerns a child, which may have been killed at
	// any time before.
	Exited bool
}

// exitKill is the exit code of a process that was killed by SIGKILL.
const exitKill = 137

// Set is the pods of a node, as the API server last reported them. A reflector fills it and uses it as its store.
type Set struct {
	mu      sync.Mutex
	pods    map[types.UID]Pod
	version int
	listed  bool
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{pods: map[types.UID]Pod{}} }

// Watch keeps the set up to date until ctx ends. It outlives API servers that go away.
func (s *Set) Watch(ctx context.Context, client cache.Getter, node string) {
	ofNode := fields.OneTermEqualSelector("spec.nodeName", node)
	lw := cache.NewListWatchFromClient(client, "pods", corev1.NamespaceAll, ofNode)
	r := cache.NewReflectorWithOptions(lw, &corev1.Pod{}, s, cache.ReflectorOptions{Name: "pods-of-this-node"})
	r.RunWithContext(ctx)
}

// All returns the pods, and a number that changes when they do. ok is false before the first list: a pod that is not
// there then may well exist.
func (s *Set) All() (pods map[types.UID]Pod, version int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[types.UID]Pod, len(s.pods))
	for uid := range s.pods {
		out[uid] = s.pods[uid]
	}
	return out, s.version, s.listed
}

// Version changes when the pods do.
func (s *Set) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Add is part of what a reflector's store does.
func (s *Set) Add(object any) error { return s.Update(object) }

// Update is part of what a reflector's store does.
func (s *Set) Update(object any) error {
	pod, err := trim(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[pod.UID] = pod
	s.version++
	return nil
}

// Delete is part of what a reflector's store does.
func (s *Set) Delete(object any) error {
	pod, err := trim(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, pod.UID)
	s.version++
	return nil
}

// Replace is part of what a reflector's store does.
func (s *Set) Replace(objects []any, _ string) error {
	pods := make(map[types.UID]Pod, len(objects))
	for _, object := range objects {
		pod, err := trim(object)
		if err != nil {
			return err
		}
		pods[pod.UID] = pod
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods, s.listed = pods, true
	s.version++
	return nil
}

// Resync is part of what a reflector's store does.
func (s *Set) Resync() error { return nil }

// maxContainers is how many containers of a pod are reported, as in the API.
const maxContainers = 32

// trim takes what is kept of a pod.
func trim(object any) (Pod, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return Pod{}, fmt.Errorf("the watch for pods returned a %T", object)
	}
	out := Pod{
		NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID,
		Asked: strings.TrimSpace(pod.Annotations[v1alpha1.InspectAnnotation]),
		Drawn: strings.EqualFold(strings.TrimSpace(pod.Annotations[v1alpha1.MapAnnotation]), "true"),
	}
	if out.Declined = strings.EqualFold(out.Asked, "false"); out.Declined {
		out.Asked = ""
	}
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if len(out.Containers) == maxContainers {
			break
		}
		out.Containers = append(out.Containers, containerOf(&status))
	}
	return out, nil
}

// oomKilled is the reason that the kubelet gives.
const oomKilled = "OOMKilled"

func containerOf(status *corev1.ContainerStatus) Container {
	c := Container{Name: status.Name, ID: idOf(status.ContainerID)}
	for _, state := range []corev1.ContainerState{status.LastTerminationState, status.State} {
		if t := state.Terminated; t != nil && t.Reason == oomKilled {
			c.Killed = append(c.Killed, End{idOf(t.ContainerID), t.FinishedAt.Time, t.ExitCode != exitKill})
		}
	}
	return c
}

// idOf is the ID of "containerd://<id>".
func idOf(s string) string {
	_, id, found := strings.Cut(s, "://")
	if !found {
		return ""
	}
	return id
}
