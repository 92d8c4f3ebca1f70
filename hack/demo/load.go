// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// enough is how many bursts a pod must survive: more than any pod lived through without memfit in our runs (three).
const enough = 4

// enoughDeaths is how many OOM kills show that a death was no accident. A stall needs no second one: it does not end.
const enoughDeaths = 2

// act is one pod of the service under the same load.
type act struct {
	name    string
	limit   memory.Bytes
	heapCap int64 // MiB, as the process itself says
	kills   int32
	aborts  int32 // ended by itself at its heap cap
	stall   *stall
	bursts  int // done in a row by the last container
	peakRSS memory.Bytes
}

type acts []act

// dead reports whether the service is of no use: killed or ended again and again, or stalled.
func (a act) dead() bool { return a.kills+a.aborts >= enoughDeaths || a.stall != nil }

// watchLoad follows one pod until it did enough bursts, or died, and reports what happened.
func (s *story) watchLoad(ctx context.Context, name string, pod *corev1.Pod) (act, error) {
	a := act{name: name, limit: memory.FromQuantity(pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory])}
	watch := stallWatch{limit: a.limit}
	var use usage
	bursts := wait{
		what: "the bursts of " + pod.Name, atMost: 15 * time.Minute, look: "logs " + pod.Name,
		detail: func() string {
			if use.total == 0 {
				return "its use is not measured yet"
			}
			return fmt.Sprintf("%s of %s in use", use.total, a.limit)
		},
	}
	err := s.await(ctx, bursts, func(ctx context.Context) (bool, string, error) {
		now, err := s.clientset.CoreV1().Pods(namespace).Get(ctx, pod.Name, getOptions)
		if err != nil {
			return false, "", err
		}
		if len(now.Status.ContainerStatuses) == 0 {
			return false, string(now.Status.Phase), nil
		}
		status := now.Status.ContainerStatuses[0]
		s.countDeath(&a, status)
		if err := s.readLog(ctx, pod.Name, &a); err != nil && status.Started != nil && *status.Started {
			return false, "", err
		}
		use = s.usage(ctx, now)
		a.peakRSS = max(a.peakRSS, use.rss)
		a.stall = watch.look(time.Now(), status.State.Running != nil, a.bursts, status.RestartCount, use)
		return a.bursts >= enough || a.dead(), fmt.Sprintf("%d bursts done, %d kills", a.bursts, a.kills), nil
	})
	if a.stall != nil {
		s.say("stalled: %s", a.stall)
	}
	return a, err
}

// countDeath notices that a container of the pod ended since the last look.
func (s *story) countDeath(a *act, status corev1.ContainerStatus) {
	dead := status.LastTerminationState.Terminated
	if dead == nil || status.RestartCount <= a.kills+a.aborts {
		return
	}
	lived := dead.FinishedAt.Sub(dead.StartedAt.Time).Round(time.Second)
	if dead.Reason == "OOMKilled" {
		a.kills = status.RestartCount - a.aborts
		s.say("%s, exit %d, after %s: kill %d at limit %s", dead.Reason, dead.ExitCode, lived, a.kills, a.limit)
		return
	}
	a.aborts = status.RestartCount - a.kills
	s.say("%s, exit %d, after %s: no kill, it ended by itself (V8 does that at its heap cap)",
		dead.Reason, dead.ExitCode, lived)
}

// readLog takes the heap cap and the number of bursts from what the running container says itself.
func (s *story) readLog(ctx context.Context, pod string, a *act) error {
	log, err := s.clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", pod, err)
	}
	defer log.Close()
	a.bursts = 0
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct {
			Event        string `json:"event"`
			HeapLimitMiB int64  `json:"heapLimitMiB"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // V8's own last words are not JSON
		}
		a.heapCap = line.HeapLimitMiB
		if line.Event == "burst done" {
			a.bursts++
		}
	}
	return nil
}

func (a acts) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tLIMIT\tHEAP CAP\tPEAK RSS\tOOM KILLS\tSTALLED\tBURSTS IN A ROW")
	for _, x := range a {
		stalled := "no"
		if x.stall != nil {
			stalled = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%dMi\t%s\t%d\t%s\t%d\n",
			x.name, x.limit, x.heapCap, x.peakRSS, x.kills, stalled, x.bursts)
	}
	return t.Flush()
}
