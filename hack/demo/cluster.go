// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

func injected(p *corev1.Pod) bool { return p.Annotations[v1alpha1.InjectedAnnotation] != "" }

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

func limitOf(p *corev1.Pod) memory.Bytes {
	return memory.FromQuantity(p.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory])
}

func (s *session) namespaceGone(ctx context.Context) (bool, string, error) {
	var ns corev1.Namespace
	err := s.Get(ctx, client.ObjectKey{Name: namespace}, &ns)
	if apierrors.IsNotFound(err) {
		return true, "", nil
	}
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			return false, c.Message, err
		}
	}
	return false, string(ns.Status.Phase), err
}

// awaitPod waits for a running pod of an app that accept accepts.
func (s *session) awaitPod(ctx context.Context, app string, accept func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var pod *corev1.Pod
	w := wait{what: "a pod of " + app, atMost: 3 * time.Minute, command: "describe pods -l app=" + app}
	err := s.await(ctx, w, func(ctx context.Context) (bool, string, error) {
		var err error
		pod, err = s.newestPod(ctx, app)
		if err != nil {
			return false, "", err
		}
		return accept(pod) && running(pod), fmt.Sprintf("%s is %s", pod.Name, pod.Status.Phase), nil
	})
	return pod, err
}

// restartUntil restarts a Deployment, at most three times, until accept accepts its pod: the webhook may receive a
// change after the new pod was admitted.
func (s *session) restartUntil(ctx context.Context, app string, accept func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var pod *corev1.Pod
	for range 3 {
		var old string
		if pod != nil {
			old = pod.Name
		} else if p, err := s.newestPod(ctx, app); err == nil {
			old = p.Name
		}
		if _, err := s.show(ctx, "rollout", "restart", "deployment", app); err != nil {
			return nil, err
		}
		var err error
		if pod, err = s.awaitPod(ctx, app, func(p *corev1.Pod) bool { return p.Name != old }); err != nil {
			return nil, err
		}
		if accept(pod) {
			return pod, nil
		}
		s.printf("%s was created too early, with limit %s: restarting again", pod.Name, limitOf(pod))
	}
	return nil, fmt.Errorf("%s has limit %s after three restarts. To inspect: kubectl -n %s describe memrec deployment-%s",
		pod.Name, limitOf(pod), namespace, app)
}

// awaitRaise waits until memfit recommends more than limit, at which the service failed.
func (s *session) awaitRaise(ctx context.Context, limit memory.Bytes) (*v1alpha1.MemoryRecommendation, error) {
	var rec v1alpha1.MemoryRecommendation
	w := wait{
		what:   "memfit to recommend more than " + limit.String() + " for Deployment bursts",
		atMost: 3 * time.Minute, command: "describe memrec deployment-bursts",
	}
	err := s.await(ctx, w, func(ctx context.Context) (bool, string, error) {
		if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "deployment-bursts"}, &rec); err != nil {
			return false, "", err
		}
		return recommended(&rec) > limit, rec.Status.Summary, nil
	})
	return &rec, err
}

// recommended returns the limit that memfit recommends for the only container; 0: none.
func recommended(rec *v1alpha1.MemoryRecommendation) memory.Bytes {
	if len(rec.Status.Containers) == 0 {
		return 0
	}
	size := rec.Status.Containers[0].Recommended
	if size == nil || size.Limit == nil {
		return 0
	}
	return memory.FromQuantity(*size.Limit)
}

func (s *session) showInjected(ctx context.Context, pod *corev1.Pod) error {
	s.printf("%s has limit %s and:", pod.Name, limitOf(pod))
	for _, e := range pod.Spec.Containers[0].Env {
		fmt.Printf("    %s=%s\n", e.Name, e.Value)
	}
	if len(pod.Spec.Containers[0].Env) == 0 {
		return fmt.Errorf("%s has the annotation %s but no setting", pod.Name, v1alpha1.InjectedAnnotation)
	}
	return ctx.Err()
}
