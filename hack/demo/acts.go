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

	"github.com/memfit/memfit/api/v1alpha1"
)

var getOptions = metav1.GetOptions{}

func withManifests(manifests string) func(context.Context, *session, *acts) error {
	return func(ctx context.Context, s *session, _ *acts) error { return applyManifests(ctx, s, manifests) }
}

func applyManifests(ctx context.Context, s *session, manifests string) error {
	// A second run starts from the beginning.
	if _, err := s.kubectl(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--wait=false"); err != nil {
		return err
	}
	gone := wait{what: "the end of an earlier run's namespace", atMost: 3 * time.Minute, command: "get all,mprof,memrec"}
	if err := s.await(ctx, gone, s.namespaceGone); err != nil {
		return err
	}
	_, err := s.show(ctx, "apply", "-k", manifests)
	return err
}

func withoutMemfit(ctx context.Context, s *session, all *acts) error {
	a, err := s.watchUntilFailure(ctx)
	if err != nil {
		return err
	}
	*all = append(*all, a)
	s.printf("V8's own heap cap is %d MiB; the limit for the whole container is %s", a.heapCap, a.limit)
	_, err = s.show(ctx, "get", "pods", "-l", "app=bursts")
	return err
}

// The service holds so many MiB of sessions: first those of bursts.yaml, and more while it survives, because V8's other
// memory depends on when it collects garbage. lastSessions no longer fit into V8's own cap.
const (
	firstSessions = 124
	moreSessions  = 12
	lastSessions  = 196
)

// watchUntilFailure watches the service until it fails, and adds sessions whenever it survives the load.
func (s *session) watchUntilFailure(ctx context.Context) (act, error) {
	accept := func(p *corev1.Pod) bool { return true }
	for sessions := firstSessions; ; {
		pod, err := s.awaitPod(ctx, "bursts", accept)
		if err != nil {
			return act{}, err
		}
		a, err := s.watchLoad(ctx, "without memfit", pod)
		if err != nil || a.failed() {
			return a, err
		}
		if sessions += moreSessions; sessions > lastSessions {
			return a, fmt.Errorf("without memfit the service survived %d bursts with %d MiB of sessions at limit %s, "+
				"expected a failure", a.bursts, sessions-moreSessions, a.limit)
		}
		s.printf("the service survived %d bursts: it gets more sessions", a.bursts)
		more := fmt.Sprintf("SESSIONS_MIB=%d", sessions)
		if _, err := s.show(ctx, "set", "env", "deployment/bursts", more); err != nil {
			return a, err
		}
		accept = func(p *corev1.Pod) bool { return p.Name != pod.Name }
	}
}

func withSettings(ctx context.Context, s *session, all *acts) error {
	if _, err := s.show(ctx, "annotate", "deployment", "bursts", v1alpha1.ProfileAnnotation+"=nodejs"); err != nil {
		return err
	}
	before := (*all)[0]
	rec, err := s.awaitRaise(ctx, before.limit)
	if err != nil && before.stall != nil && ctx.Err() == nil {
		s.printf("memfit has not reported the stall yet: %s", err)
		if err = s.endStall(ctx); err == nil {
			rec, err = s.awaitRaise(ctx, before.limit)
		}
	}
	if err != nil {
		return err
	}
	s.printf("memfit already observed what happened: %s", rec.Status.Summary)
	pod, err := s.restartUntil(ctx, "bursts", injected)
	if err != nil {
		return err
	}
	if err := s.showInjected(ctx, pod); err != nil {
		return err
	}
	a, err := s.watchLoad(ctx, "with its settings", pod)
	*all = append(*all, a)
	if err != nil {
		return err
	}
	if a.heapCap >= before.heapCap {
		return fmt.Errorf("the heap cap inside the process is %d MiB, not below the %d MiB it had without memfit",
			a.heapCap, before.heapCap)
	}
	if a.failed() {
		s.printf("the heap fits, but the limit is too small for this load on this machine: it needs the recommended size")
		return nil
	}
	s.printf("%d bursts in a row at the same limit %s", a.bursts, a.limit)
	return nil
}

func readRecommendation(ctx context.Context, s *session, _ *acts) error {
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
	if !strings.Contains(events, "OOMKilled") && !strings.Contains(events, "MemoryStalled") {
		return errors.New("the Deployment has no event about its OOM kill or stall")
	}
	return nil
}

func withRecommendation(ctx context.Context, s *session, all *acts) error {
	before := (*all)[0].limit
	rec, err := s.awaitRaise(ctx, before)
	if err != nil {
		return err
	}
	want := recommended(rec)
	onCreate := `{"spec":{"sizing":{"mode":"OnCreate"}}}`
	if _, err := s.show(ctx, "patch", "memoryprofile", "nodejs", "--type", "merge", "-p", onCreate); err != nil {
		return err
	}
	pod, err := s.restartUntil(ctx, "bursts", func(p *corev1.Pod) bool { return injected(p) && limitOf(p) > before })
	if err != nil {
		return fmt.Errorf("a pod with the recommended limit %s: %w", want, err)
	}
	if err := s.showInjected(ctx, pod); err != nil {
		return err
	}
	a, err := s.watchLoad(ctx, "with the recommended size", pod)
	*all = append(*all, a)
	if err != nil {
		return err
	}
	if a.kills > 0 || a.bursts < minBursts {
		return fmt.Errorf("with the recommended limit %s: %d kills, %d bursts, want no kill and %d bursts",
			a.limit, a.kills, a.bursts, minBursts)
	}
	s.printf("%d bursts in a row, no kill, limit %s", a.bursts, a.limit)
	return nil
}

func others(ctx context.Context, s *session, _ *acts) error {
	for _, o := range []struct {
		app, want string
		command   func(pod string) []string // reads the setting from the process
	}{
		{"batches", "TrimNativeHeapInterval=30000", func(pod string) []string {
			return []string{"exec", pod, "--", "jcmd", "1", "VM.flags"}
		}},
		{"cache", `"goMemLimit":120795955`, func(pod string) []string { // 90 % of 128Mi
			return []string{"get", "--raw", "/api/v1/namespaces/" + namespace + "/pods/" + pod + ":8080/proxy/stats"}
		}},
	} {
		pod, err := s.awaitPod(ctx, o.app, running)
		if err == nil && !injected(pod) {
			s.printf("%s was created before memfit's webhook received its profile: restarting", pod.Name)
			pod, err = s.restartUntil(ctx, o.app, injected)
		}
		if err != nil {
			return err
		}
		if err := s.showInjected(ctx, pod); err != nil {
			return err
		}
		command := o.command(pod.Name)
		var out string
		answer := wait{what: "an answer of the process in " + pod.Name, atMost: 2 * time.Minute, command: "logs " + pod.Name}
		err = s.await(ctx, answer, func(ctx context.Context) (bool, string, error) {
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
