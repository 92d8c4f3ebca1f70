// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// TestAManagerThatOnlyObservesPromisesNothing: without the webhook, profile and recommendation name what new pods lack.
func TestAManagerThatOnlyObservesPromisesNothing(t *testing.T) {
	t.Setenv("ENABLE_WEBHOOKS", "false")
	c := commonCluster(t)
	c.start(t).ready(t)
	c.create(t, build.Namespace(c.namespace))
	c.create(t, build.Profile(c.namespace, "web", v1alpha1.RuntimeNodeJS, build.Sizing(v1alpha1.SizingOnCreate)))
	deployment := build.Deployment(c.namespace, "web", v1alpha1.ProfileAnnotation, "web")
	c.create(t, deployment)
	set := build.ReplicaSet(deployment, "5d4f8c7b9")
	c.create(t, set)
	pod := c.webPod().OwnedBy(set, "apps/v1", "ReplicaSet").Obj()
	status := pod.Status
	c.create(t, pod)
	pod.Status = status
	c.status(t, pod)
	c.killed(t, pod)

	var profile v1alpha1.MemoryProfile
	var rec v1alpha1.MemoryRecommendation
	eventually(t, 30*time.Second, func() error {
		key := client.ObjectKey{Namespace: c.namespace, Name: "web"}
		if err := c.client.Get(t.Context(), key, &profile); err != nil {
			return err
		}
		key.Name = "deployment-web"
		if err := c.client.Get(t.Context(), key, &rec); err != nil {
			return err
		}
		injection := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionInjectionUpToDate)
		applied := meta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionApplied)
		if injection == nil || injection.Reason != v1alpha1.ReasonPodsOutOfDate || applied == nil ||
			applied.Reason != v1alpha1.ReasonWaitingForNewPods {
			return fmt.Errorf("the conditions are %+v and %+v", injection, applied)
		}
		for _, message := range []string{injection.Message, applied.Message} {
			if !strings.Contains(message, "without its webhook") || strings.Contains(message, "ew pods get it") {
				t.Errorf("new pods are promised something: %s", message)
			}
		}
		return nil
	})
}
