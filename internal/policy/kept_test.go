// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/build"
)

// TestWhatIsKeptAnswersForAMissingOwner: pods outlive their owners, and only what was read of these before knows the
// workload and its profile. Nothing is kept from an answer in which an owner was missing.
func TestWhatIsKeptAnswersForAMissingOwner(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cronJob := build.CronJob("shop", "nightly", v1alpha1.ProfileAnnotation, "web", v1alpha1.PauseAnnotation, "true")
	cronJob.UID = "cronjob"
	job := build.Job("shop", "nightly-1", cronJob)
	job.UID = "job"
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		build.Namespace("shop"), cronJob, job, build.Profile("shop", "web", v1alpha1.RuntimeNodeJS),
	).Build()
	reads := 0
	api := interceptor.NewClient(cached, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
	) error {
		reads++
		return c.Get(ctx, key, obj, opts...)
	}})
	resolver := policy.New(cached, api).Excluding("kube-system")
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := build.Pod("shop", "nightly-1-x").OwnedBy(job, "batch/v1", "Job").Obj()
	first, err := resolver.ResolveCached(t.Context(), pod, policy.Remembered{})
	if err != nil {
		t.Fatal(err)
	}
	kept, complete := first.Remember(pod)
	want := policy.Remembered{
		Workload: memory.WorkloadRef{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "shop", Name: "nightly"},
		Owner:    "cronjob", Controller: "job",
		Profile: profile.Key{Kind: "MemoryProfile", Namespace: "shop", Name: "web"},
	}
	if !complete || kept != want {
		t.Fatalf("kept %+v (%t), want %+v", kept, complete, want)
	}

	if err := cached.Delete(t.Context(), job); err != nil { // its ttlSecondsAfterFinished is over
		t.Fatal(err)
	}
	again, err := resolver.ResolveRemembered(t.Context(), pod, kept)
	if err != nil || again.Ref != want.Workload || again.Profile == nil || again.Paused == "" {
		t.Errorf("without its Job: %+v, %v, want the CronJob, which is paused, and its profile", again, err)
	}
	if err := cached.Delete(t.Context(), cronJob); err != nil {
		t.Fatal(err)
	}
	last, err := resolver.ResolveCached(t.Context(), pod, kept)
	if err != nil || last.Ref != want.Workload || last.UID != "cronjob" || last.Profile == nil || !last.Gone {
		t.Errorf("without its CronJob: %+v, %v, want what was kept", last, err)
	}
	if _, complete := last.Remember(pod); complete {
		t.Error("an answer without an owner would replace what was kept")
	}
	if reads > 0 {
		t.Errorf("%d reads of the API server for a pod that was resolved before, want none", reads)
	}
	adopted := pod.DeepCopy()
	adopted.OwnerReferences[0].UID = "another"
	if _, err := resolver.ResolveCached(t.Context(), adopted, kept); !errors.Is(err, owners.ErrNotSeen) {
		t.Errorf("a pod with another controller: %v, want an owner that was not seen", err)
	}

	system := build.Pod("kube-system", "x").OwnedBy(job, "batch/v1", "Job").Obj()
	excluded, err := resolver.ResolveRemembered(t.Context(), system, policy.Remembered{})
	if err != nil || excluded.Problem != profile.Excluded || reads > 0 {
		t.Errorf("in an excluded namespace: %q, %v after %d reads, want Excluded without any", excluded.Problem, err, reads)
	}
}
