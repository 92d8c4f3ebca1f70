// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const historyLong = `Show what memfit changed on the pods of one workload and the outcome, newest first, with the
OOM kills and stalls before and after.

  Resized             a pod runs with the new size; the line below has the recommendation at that time
  Replaced            the successor of an evicted pod runs with the new size
  NotResized          the resize failed and was rolled back; the line below has the reason
  Reverted            a lower limit led to kills, restarts or a pod that was not ready, and was rolled back from
                      every pod
  ConflictingWriter   another writer changed a size that memfit had set; memfit does not resize the pods for 24 hours
  RestartedForMemory  memfit evicted a pod whose memory drifted (drift.action: Restart in the profile)
  MemoryLoaned        memfit raised a container's limit for a while to prevent an OOM kill (sizing.rescue)
  LoanReturned        the raise of MemoryLoaned ended; the line below has the reason

memfit keeps the last 16 changes, 20 OOM kills and 8 stalls of a workload. The annotation memfit.dev/injected of a pod
lists what memfit set when the pod was created. Nothing is written to the cluster.`

const historyExample = `  kubectl memfit history deployment/web -n shop

  # What was rolled back, and why
  kubectl memfit history web -o json | jq -r '.items[].change | select(.kind == "Reverted") | .why'`

func historyCommand() *cobra.Command {
	return newWorkloadVerb(&cobra.Command{
		Use:   "history WORKLOAD [-n NAMESPACE] [-o FORMAT]",
		Short: "Show what memfit changed on a workload's pods, and the outcome",
		Long:  historyLong, Example: historyExample,
	}).withRun(showHistory)
}

func showHistory(v *verb) error {
	rec, err := v.recommendation()
	if err != nil {
		return err
	}
	h := report.HistoryOf(rec)
	return v.page("WorkloadHistoryList", h, h.Write)
}
