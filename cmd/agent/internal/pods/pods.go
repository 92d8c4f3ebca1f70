// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods caches the pods of one node from a watch of the API server: the IDs of their containers, which the names
// of cgroups contain, and their OOM kills. Package scan reads it.
package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Pod holds the fields of a pod that the agent needs.
type Pod struct {
	metav1.ObjectMeta // namespace, name, UID and resource version only

	Declined   bool // the annotation memfit.dev/inspect is "false"
	Request    Request
	Containers []Container
}

// Request is a user's request for an inspection of a pod; zero: none. Each change requests another inspection.
type Request struct {
	Value string // the value of the annotation memfit.dev/inspect
	Map   bool   // whether a map of the pod's pages is requested
}

// Container holds the fields of a container that the agent needs.
type Container struct {
	Name string
	ID   string // of the current or last instance, as in its cgroup's name; "" before the first
	// Killed are the instances that the pod's status reports as OOM-killed, at most two: the previous and the current one.
	Killed []End
}

// End is how an instance ended.
type End struct {
	ID string
	At time.Time
	// Exited is true if the main process was not killed. The kubelet then reports the OOM kill of a child process, which
	// may have happened at any earlier time.
	Exited bool
}

// Set holds a [Pod] for each pod of a node, as the API server last reported it. It is the store of a reflector.
type Set struct{ cache.Store }

// NewSet returns an empty set.
func NewSet() *Set { return &Set{cache.NewStore(uidOf, cache.WithTransformer(trim))} }

// Watch keeps the set up to date until ctx ends. It retries while the API server is unavailable.
func (s *Set) Watch(ctx context.Context, client cache.Getter, node string) {
	ofNode := fields.OneTermEqualSelector("spec.nodeName", node)
	lw := cache.NewListWatchFromClient(client, "pods", corev1.NamespaceAll, ofNode)
	r := cache.NewReflectorWithOptions(lw, &corev1.Pod{}, s, cache.ReflectorOptions{Name: "pods-of-this-node"})
	r.RunWithContext(ctx)
}

// All returns the pods, and a version that changes when they do. ok is false before the first list.
func (s *Set) All() (pods map[types.UID]Pod, version string, ok bool) {
	version = s.Version()
	list := s.List()
	pods = make(map[types.UID]Pod, len(list))
	for _, kept := range list {
		if pod, ok := kept.(*Pod); ok {
			pods[pod.UID] = *pod
		}
	}
	return pods, version, version != ""
}

// Version changes when the pods do; empty: not listed yet.
func (s *Set) Version() string { return s.LastStoreSyncResourceVersion() }

func uidOf(object any) (string, error) {
	pod, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return string(pod.GetUID()), nil
}

// maxContainers bounds the reported containers of a pod, as in the API.
const maxContainers = 32

// trim converts a pod of the API server to a [Pod].
func trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("the watch for pods returned a %T", object)
	}
	out := &Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Request: Request{
			Value: strings.TrimSpace(pod.Annotations[v1alpha1.InspectAnnotation]),
			Map:   strings.EqualFold(strings.TrimSpace(pod.Annotations[v1alpha1.MapAnnotation]), "true"),
		},
	}
	out.Declined = strings.EqualFold(out.Request.Value, "false")
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if len(out.Containers) == maxContainers {
			break
		}
		out.Containers = append(out.Containers, containerOf(&status))
	}
	return out, nil
}

const (
	oomKilled = "OOMKilled" // the kubelet's reason
	exitKill  = 137         // the exit code after SIGKILL
)

func containerOf(status *corev1.ContainerStatus) Container {
	c := Container{Name: status.Name, ID: idOf(status.ContainerID)}
	for _, state := range []corev1.ContainerState{status.LastTerminationState, status.State} {
		if t := state.Terminated; t != nil && t.Reason == oomKilled {
			c.Killed = append(c.Killed, End{idOf(t.ContainerID), t.FinishedAt.Time, t.ExitCode != exitKill})
		}
	}
	return c
}

// idOf returns the ID in "containerd://<id>".
func idOf(s string) string {
	_, id, _ := strings.Cut(s, "://")
	return id
}
