// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/memfit/memfit/internal/memory"
)

// enough is how many bursts a pod must survive: more than any pod lived through without memfit in our runs (three).
const enough = 6

// act is one pod of the service under the same load.
type act struct {
	name    string
	limit   memory.Bytes
	heapCap int64 // MiB, as the process itself says
	kills   int32
	bursts  int // done in a row by the last container
	peakRSS memory.Bytes
}

type acts []act

// errHeld: the kernel does not kill the process but takes its program's pages away and reads them back from disk, for as long as one
// cares to watch (RSS just below the limit, 200 major faults a second; seen in one of five runs).
var errHeld = errors.New("is held just below its limit by reclaim and gets nowhere")

// patience is how long a running process may take for a burst, which takes a second or two.
const patience = time.Minute

// watchLoad follows one pod until it was OOM-killed often enough or did enough bursts, and reports what happened.
func (s *story) watchLoad(ctx context.Context, name string, pod *corev1.Pod, untilKills int32) (act, error) {
	a := act{name: name, limit: memory.FromQuantity(pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory])}
	bursts, since := 0, time.Now()
	var held error
	err := s.await(ctx, "the bursts of "+pod.Name, 10*time.Minute, func(ctx context.Context) (bool, string, error) {
		now, err := s.clientset.CoreV1().Pods(namespace).Get(ctx, pod.Name, getOptions)
		if err != nil {
			return false, "", err
		}
		if len(now.Status.ContainerStatuses) == 0 {
			return false, string(now.Status.Phase), nil
		}
		status := now.Status.ContainerStatuses[0]
		if dead := status.LastTerminationState.Terminated; dead != nil && status.RestartCount > a.kills {
			if dead.Reason != "OOMKilled" {
				return false, "", fmt.Errorf("the container ended with %s (exit %d), not by an OOM kill", dead.Reason, dead.ExitCode)
			}
			a.kills = status.RestartCount
			s.say("%s, exit %d, after %s: kill %d at limit %s", dead.Reason, dead.ExitCode,
				dead.FinishedAt.Sub(dead.StartedAt.Time).Round(time.Second), a.kills, a.limit)
		}
		a.peakRSS = max(a.peakRSS, s.rss(ctx, now))
		if err := s.readLog(ctx, pod.Name, &a); err != nil && status.Started != nil && *status.Started {
			return false, "", err
		}
		if a.bursts != bursts || status.State.Running == nil {
			bursts, since = a.bursts, time.Now()
		}
		if untilKills > 0 && a.peakRSS > a.limit.Percent(90) && time.Since(since) > patience {
			held = errHeld
			return true, "", nil
		}
		done := a.bursts >= enough || (untilKills > 0 && a.kills >= untilKills)
		return done, fmt.Sprintf("%d bursts done, %d kills, peak RSS %s of %s", a.bursts, a.kills, a.peakRSS, a.limit), nil
	})
	return a, errors.Join(err, held)
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

// rss is the pod's anonymous memory as its kubelet last measured it, 0 when it has not yet.
func (s *story) rss(ctx context.Context, pod *corev1.Pod) memory.Bytes {
	raw, err := s.clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).
		SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	var summary stats.Summary
	if err != nil || json.Unmarshal(raw, &summary) != nil {
		return 0
	}
	for _, p := range summary.Pods {
		if p.PodRef.UID != string(pod.UID) || len(p.Containers) == 0 {
			continue
		}
		if m := p.Containers[0].Memory; m != nil && m.RSSBytes != nil {
			return memory.Bytes(*m.RSSBytes) //nolint:gosec // a container's memory fits 63 bits
		}
	}
	return 0
}

func (a acts) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tLIMIT\tHEAP CAP\tPEAK RSS\tOOM KILLS\tBURSTS IN A ROW")
	for _, x := range a {
		fmt.Fprintf(t, "%s\t%s\t%dMi\t%s\t%d\t%d\n", x.name, x.limit, x.heapCap, x.peakRSS, x.kills, x.bursts)
	}
	return t.Flush()
}
