// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
)

// shelf is a cache that costs next to nothing, so that a benchmark shows what memfit does.
type shelf map[client.ObjectKey]any

func (s shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch found := s[key].(type) {
	case *metav1.PartialObjectMetadata:
		if into, ok := into.(*metav1.PartialObjectMetadata); ok && found.Kind == into.Kind {
			*into = *found
			return nil
		}
	case *v1alpha1.MemoryRecommendation:
		if into, ok := into.(*v1alpha1.MemoryRecommendation); ok {
			*into = *found
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s shelf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if into, ok := into.(*v1alpha1.MemoryProfileList); ok {
		into.Items = []v1alpha1.MemoryProfile{*s[client.ObjectKey{Name: "profile"}].(*v1alpha1.MemoryProfile)}
	}
	return nil
}

// BenchmarkPod is one pod from the request's bytes to the answer's, without network and cache: a usual pod of a
// Deployment with two containers, as an API server sent it.
func BenchmarkPod(b *testing.B) {
	body, err := os.ReadFile("testdata/review.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"governed", "ungoverned"} {
		b.Run(name, func(b *testing.B) {
			h, answer := benchHandler(b, name == "governed"), &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(answer, &http.Request{
					Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
				})
			}
			if patched := answer.size > 500; patched == (name == "ungoverned") {
				b.Errorf("answers of %d bytes", answer.size)
			}
		})
	}
}

func benchHandler(b *testing.B, governed bool) *Injector {
	b.Helper()
	const ns = "team-00"
	profile := build.Profile(ns, "nodejs-00000", v1alpha1.RuntimeNodeJS, build.Sizing(v1alpha1.SizingOnCreate),
		func(s *v1alpha1.MemoryProfileSpec) {
			s.Containers = []v1alpha1.ContainerPolicy{
				{Name: "proxy", Mode: "Managed", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}},
			}
			s.Tuning.ArenaMax = new(int32(2))
		})
	profile.UID = "p"
	deployment := build.Deployment(ns, "web-00000")
	if governed {
		deployment.Annotations = map[string]string{v1alpha1.ProfileAnnotation: profile.Name}
	}
	set := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet"}}
	set.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment.Name, UID: "d", Controller: new(true)},
	}
	recommendation := &v1alpha1.MemoryRecommendation{}
	recommendation.OwnerReferences = set.OwnerReferences
	for _, c := range []struct{ name, limit, request string }{{"app", "704Mi", "640Mi"}, {"proxy", "160Mi", "128Mi"}} {
		limit, request := resource.MustParse(c.limit), resource.MustParse(c.request)
		recommendation.Status.Containers = append(
			recommendation.Status.Containers,
			v1alpha1.ContainerRecommendation{Container: c.name, NewPods: &v1alpha1.Size{Limit: &limit, Request: &request}},
		)
	}
	cache := shelf{
		{Name: "profile"}: profile,
		{Namespace: ns, Name: "web-00000-5d1c000000"}: set,
		{Namespace: ns, Name: "web-00000"}: &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: deployment.Name, Annotations: deployment.Annotations},
		},
		{Namespace: ns, Name: "deployment-web-00000"}: recommendation,
		{Name: ns}: &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Namespace"}},
	}
	resolver := policy.New(cache, nil)
	if err := resolver.Rebuild(b.Context()); err != nil {
		b.Fatal(err)
	}
	trials := &Trials{Report: func(memory.Workload, string) {}}
	trials.begin()
	return &Injector{
		Resolver: resolver, Reader: cache, Constraints: &constraintindex.Index{Reader: cache}, Trials: trials,
		Metrics: NewMetrics(prometheus.NewRegistry()), Clock: clock.RealClock{},
	}
}

// sink takes an answer and keeps its size.
type sink struct {
	header http.Header
	size   int
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(int) {}

func (s *sink) Write(b []byte) (int, error) {
	s.size = len(b)
	return len(b), nil
}
