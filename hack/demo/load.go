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

// minBursts is how many bursts a pod must survive: more than any pod survived without memfit in our runs (three).
const minBursts = 4

// minDeaths is how many kills or aborts count as a failure; one may be an accident. One stall counts: it does not end.
const minDeaths = 2

// act is one pod of the service under the same load.
type act struct {
	name    string
	limit   memory.Bytes
	heapCap int64 // MiB, as the process reports it
	kills   int32
	aborts  int32 // exits of the process at its heap cap
	stall   *stall
	bursts  int // completed in a row by the last container
	peakRSS memory.Bytes
}

type acts []act

// failed reports whether the service was killed or aborted repeatedly, or stalled.
func (a act) failed() bool { return a.kills+a.aborts >= minDeaths || a.stall != nil }

// watchLoad watches one pod until it has completed minBursts bursts or failed.
func (s *session) watchLoad(ctx context.Context, name string, pod *corev1.Pod) (act, error) {
	a := act{name: name, limit: memory.FromQuantity(pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory])}
	watch := stallWatch{limit: a.limit}
	var use usage
	bursts := wait{
		what: "the bursts of " + pod.Name, atMost: 15 * time.Minute, command: "logs " + pod.Name,
		detail: func() string {
			if use.total == 0 {
				return "its usage is not measured yet"
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
		s.countRestart(&a, status)
		if err := s.readLog(ctx, pod.Name, &a); err != nil && status.Started != nil && *status.Started {
			return false, "", err
		}
		use = s.usage(ctx, now)
		a.peakRSS = max(a.peakRSS, use.rss)
		a.stall = watch.observe(time.Now(), status.State.Running != nil, a.bursts, status.RestartCount, use)
		return a.bursts >= minBursts || a.failed(), fmt.Sprintf("%d bursts done, %d kills", a.bursts, a.kills), nil
	})
	if a.stall != nil {
		s.printf("stalled: %s", a.stall)
	}
	return a, err
}

// countRestart records a container of the pod that ended since the last call.
func (s *session) countRestart(a *act, status corev1.ContainerStatus) {
	last := status.LastTerminationState.Terminated
	if last == nil || status.RestartCount <= a.kills+a.aborts {
		return
	}
	ran := last.FinishedAt.Sub(last.StartedAt.Time).Round(time.Second)
	if last.Reason == "OOMKilled" {
		a.kills = status.RestartCount - a.aborts
		s.printf("%s, exit %d, after %s: kill %d at limit %s", last.Reason, last.ExitCode, ran, a.kills, a.limit)
		return
	}
	a.aborts = status.RestartCount - a.kills
	s.printf("%s, exit %d, after %s: not killed, the process aborted (V8 does so at its heap cap)",
		last.Reason, last.ExitCode, ran)
}

// readLog reads the heap cap and the number of bursts from the running container's log.
func (s *session) readLog(ctx context.Context, pod string, a *act) error {
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
			continue // V8's own messages are not JSON
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
