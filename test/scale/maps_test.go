// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/records"
	decision "github.com/memfit/memfit/internal/workload"
)

// maps implements a cluster without network and disk: the contents of memfit's caches, and a count of its writes. A
// method that is not implemented panics, so that no request is ignored.
type maps struct {
	client.Client
	pods map[client.ObjectKey]*corev1.Pod
	// owners are ReplicaSets and Deployments; their names differ.
	owners   map[client.ObjectKey]*metav1.PartialObjectMetadata
	profiles []v1alpha1.ClusterMemoryProfile
	// workloads are by the key of their MemoryRecommendation.
	workloads map[client.ObjectKey]*workload

	writes writes
	// weigh: the sizes of checkpoints are added up in checkpoints, in bytes.
	weigh       bool
	checkpoints int64
	version     int
}

// writes counts write requests.
type writes struct{ status, checkpoints, events int64 }

// Get returns objects without copying them, like the manager's cache.
func (m *maps) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch out := obj.(type) {
	case *corev1.Pod:
		if pod, found := m.pods[key]; found {
			*out = *pod
			return nil
		}
	case *metav1.PartialObjectMetadata:
		if out.Kind == "Namespace" {
			return nil
		}
		if owner, found := m.owners[key]; found {
			*out = *owner
			return nil
		}
	case *v1alpha1.MemoryRecommendation:
		if w := m.workloads[key]; w != nil && w.recommended {
			owner := m.owners[client.ObjectKey{Namespace: w.ref.Namespace, Name: w.ref.Name}]
			out.ResourceVersion = "1" // like a cache that lags: there is no other writer
			out.OwnerReferences = records.Owners(w.ref, owner.UID)
			return nil
		}
	case *v1alpha1.MemoryCheckpoint:
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// Pod returns a pod of the cache, or nil.
func (m *maps) Pod(_ context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	return m.pods[key], nil
}

func (m *maps) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if profiles, ok := list.(*v1alpha1.ClusterMemoryProfileList); ok {
		profiles.Items = m.profiles
	}
	return nil
}

func (m *maps) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if _, ok := obj.(*v1alpha1.MemoryRecommendation); ok {
		m.workloads[client.ObjectKeyFromObject(obj)].recommended = true
	}
	return m.countWrite(obj)
}

// Status returns a writer that sets a new resource version, like the API server.
func (m *maps) Status() client.SubResourceWriter { return statusOf{of: m} }

type statusOf struct {
	client.SubResourceWriter
	of *maps
}

func (s statusOf) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.of.countWrite(obj)
}

func (m *maps) countWrite(obj client.Object) error {
	m.version++
	obj.SetResourceVersion(strconv.Itoa(m.version))
	checkpoint, ok := obj.(*v1alpha1.MemoryCheckpoint)
	if !ok {
		m.writes.status++
		return nil
	}
	m.writes.checkpoints++
	if m.weigh {
		data, err := json.Marshal(&checkpoint.Status)
		m.checkpoints += int64(len(data))
		return err
	}
	return nil
}

// Record counts the requests of an Event; memfit's own recorder sends fewer when there are many.
func (m *maps) Record(_ memory.Workload, e decision.Event) {
	m.writes.events++
	if e.OnRelated != "" {
		m.writes.events++
	}
}
