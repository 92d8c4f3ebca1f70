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

// maps is a cluster without network and disk: what memfit's caches would hold, and a count of what it writes. A method
// that memfit is not known to need is a nil dereference, so that nothing is passed over silently.
type maps struct {
	client.Client
	pods map[client.ObjectKey]*corev1.Pod
	// owners are ReplicaSets and Deployments; their names differ.
	owners   map[client.ObjectKey]*metav1.PartialObjectMetadata
	profiles []v1alpha1.ClusterMemoryProfile
	// workloads are those of MemoryRecommendations, by the name of theirs.
	workloads map[client.ObjectKey]*workload

	writes writes
	// weigh also adds up the size of checkpoints.
	weigh       bool
	checkpoints int64
	version     int
}

// writes are requests that change something in the API server.
type writes struct{ status, checkpoints, events int64 }

// Get answers as the manager's cache does: without copying what is only read.
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
			out.ResourceVersion = "1" // as a cache that lags: no other writer is here
			out.OwnerReferences = records.Owners(w.ref, owner.UID)
			return nil
		}
	case *v1alpha1.MemoryCheckpoint:
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// Pod answers as a PodSource does.
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
	return m.wrote(obj)
}

// Status writes like the API server: the answer is a new version.
func (m *maps) Status() client.SubResourceWriter { return statusOf{of: m} }

type statusOf struct {
	client.SubResourceWriter
	of *maps
}

func (s statusOf) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.of.wrote(obj)
}

func (m *maps) wrote(obj client.Object) error {
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

// Record counts an event as the requests it is; memfit's own recorder writes fewer where they are many.
func (m *maps) Record(_ memory.Workload, e decision.Event) {
	m.writes.events++
	if e.OnRelated != "" {
		m.writes.events++
	}
}
