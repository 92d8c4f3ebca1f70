// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

var getOptions = metav1.GetOptions{}

func applyManifests(ctx context.Context, s *story, manifests string) error {
	// A second telling starts from the beginning.
	if _, err := s.kubectl(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait=true", "--timeout=120s"); err != nil {
		return err
	}
	_, err := s.show(ctx, "apply", "-k", manifests)
	return err
}

func withoutMemfit(ctx context.Context, s *story, all *acts) error {
	var a act
	held := map[string]bool{}
	for {
		pod, err := s.awaitPod(ctx, "bursts", func(p *corev1.Pod) bool { return !held[p.Name] })
		if err != nil {
			return err
		}
		a, err = s.watchLoad(ctx, "without memfit", pod, 2)
		if err == nil {
			break
		}
		if held[pod.Name] = true; !errors.Is(err, errHeld) || len(held) == 5 {
			return err
		}
		// The story is about the other way this ends; which one it is, the kernel decides.
		s.say("%s %s: starting another", pod.Name, err)
		if _, err := s.kubectl(ctx, "delete", "pod", pod.Name, "--grace-period=1"); err != nil {
			return err
		}
	}
	if a.kills < 2 {
		return fmt.Errorf("the service was to be OOM-killed twice without memfit, but it lived through %d bursts with %d kills", a.bursts, a.kills)
	}
	*all = append(*all, a)
	s.say("V8 believes it may use %d MiB of heap; the kernel allows %s for everything", a.heapCap, a.limit)
	_, err := s.show(ctx, "get", "pods", "-l", "app=bursts")
	return err
}

func withSettings(ctx context.Context, s *story, all *acts) error {
	if _, err := s.show(ctx, "annotate", "deployment", "bursts", v1alpha1.ProfileAnnotation+"=nodejs"); err != nil {
		return err
	}
	rec, err := s.awaitRecommendation(ctx)
	if err != nil {
		return err
	}
	s.say("memfit found the kill that happened before it was asked: %s", rec.Status.Summary)
	if _, err := s.show(ctx, "rollout", "restart", "deployment", "bursts"); err != nil {
		return err
	}
	pod, err := s.awaitPod(ctx, "bursts", injected)
	if err != nil {
		return err
	}
	if err := s.showInjected(ctx, pod); err != nil {
		return err
	}
	a, err := s.watchLoad(ctx, "with its settings", pod, 0)
	*all = append(*all, a)
	if err != nil {
		return err
	}
	if before := (*all)[0].heapCap; a.heapCap >= before {
		return fmt.Errorf("the heap cap inside the process is %d MiB, not below the %d MiB it had without memfit", a.heapCap, before)
	}
	return nil
}

func readRecommendation(ctx context.Context, s *story, _ *acts) error {
	out, err := s.show(ctx, "describe", "memoryprofile", "nodejs")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Deployment bursts") {
		return errors.New("kubectl describe memoryprofile nodejs does not mention Deployment bursts")
	}
	events, err := s.show(ctx, "events", "--for", "deployment/bursts")
	if err != nil {
		return err
	}
	if !strings.Contains(events, "OOMKill") {
		return errors.New("the Deployment has no event about its OOM kill")
	}
	return nil
}

func withRecommendation(ctx context.Context, s *story, all *acts) error {
	rec, err := s.awaitRecommendation(ctx)
	if err != nil {
		return err
	}
	want := memory.FromQuantity(*rec.Status.Containers[0].Recommended.Limit)
	if _, err := s.show(ctx, "patch", "memoryprofile", "nodejs", "--type", "merge", "-p", `{"spec":{"sizing":{"mode":"OnCreate"}}}`); err != nil {
		return err
	}
	if _, err := s.show(ctx, "rollout", "restart", "deployment", "bursts"); err != nil {
		return err
	}
	pod, err := s.awaitPod(ctx, "bursts", func(p *corev1.Pod) bool {
		return injected(p) && memory.FromQuantity(p.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]) != (*all)[0].limit
	})
	if err != nil {
		return fmt.Errorf("a pod with the recommended limit %s: %w", want, err)
	}
	if err := s.showInjected(ctx, pod); err != nil {
		return err
	}
	a, err := s.watchLoad(ctx, "with the recommended size", pod, 0)
	*all = append(*all, a)
	if err != nil {
		return err
	}
	if a.kills > 0 || a.bursts < enough {
		return fmt.Errorf("with the recommended limit %s it was to survive %d bursts: %d kills, %d bursts", a.limit, enough, a.kills, a.bursts)
	}
	s.say("%d bursts in a row, no kill, limit %s", a.bursts, a.limit)
	return nil
}

func others(ctx context.Context, s *story, _ *acts) error {
	for _, o := range []struct {
		app, want string
		command   func(pod string) []string // asks the process itself
	}{
		{"batches", "TrimNativeHeapInterval=30000", func(pod string) []string {
			return []string{"exec", pod, "--", "jcmd", "1", "VM.flags"}
		}},
		{"cache", `"goMemLimit":120795955`, func(pod string) []string { // 90 % of 128Mi
			return []string{"get", "--raw", "/api/v1/namespaces/" + namespace + "/pods/" + pod + ":8080/proxy/stats"}
		}},
	} {
		pod, err := s.awaitPod(ctx, o.app, func(p *corev1.Pod) bool { return injected(p) && running(p) })
		if err != nil {
			return err
		}
		if err := s.showInjected(ctx, pod); err != nil {
			return err
		}
		command := o.command(pod.Name)
		var out string
		err = s.await(ctx, "the process in "+pod.Name, time.Minute, func(ctx context.Context) (bool, string, error) {
			out, err = s.kubectl(ctx, command...)
			return err == nil, "", err
		})
		if err != nil {
			return err
		}
		fmt.Printf("$ kubectl %s\n%s", quoted(command), indent(out))
		if !strings.Contains(out, o.want) {
			return fmt.Errorf("kubectl %s does not show %s", quoted(command), o.want)
		}
	}
	return nil
}

func injected(p *corev1.Pod) bool { return p.Annotations[v1alpha1.InjectedAnnotation] != "" }

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

func (s *story) awaitPod(ctx context.Context, app string, accept func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := s.await(ctx, "a pod of "+app, 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		var err error
		pod, err = s.newestPod(ctx, app)
		if err != nil {
			return false, "", err
		}
		return accept(pod) && running(pod), fmt.Sprintf("%s is %s", pod.Name, pod.Status.Phase), nil
	})
	return pod, err
}

// awaitRecommendation waits until memfit has counted the kill and has a number.
func (s *story) awaitRecommendation(ctx context.Context) (*v1alpha1.MemoryRecommendation, error) {
	var rec v1alpha1.MemoryRecommendation
	err := s.await(ctx, "the recommendation for Deployment bursts", time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "deployment-bursts"}, &rec); err != nil {
			return false, "", err
		}
		has := len(rec.Status.Containers) > 0 && rec.Status.Containers[0].Recommended != nil && rec.Status.Containers[0].Recommended.Limit != nil
		return has && rec.Status.OOMKills > 0, rec.Status.Summary, nil
	})
	return &rec, err
}

func (s *story) showInjected(ctx context.Context, pod *corev1.Pod) error {
	s.say("%s has limit %s and:", pod.Name, memory.FromQuantity(pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]))
	for _, e := range pod.Spec.Containers[0].Env {
		fmt.Printf("    %s=%s\n", e.Name, e.Value)
	}
	if len(pod.Spec.Containers[0].Env) == 0 {
		return fmt.Errorf("%s has the annotation %s but no setting", pod.Name, v1alpha1.InjectedAnnotation)
	}
	return ctx.Err()
}
