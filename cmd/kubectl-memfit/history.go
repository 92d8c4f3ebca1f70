// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const historyLong = `Show what memfit changed on the pods of one workload and the outcome, newest first, with the
OOM kills and stalls before and after.

  Resized             a pod runs with the new size; the line below is what was recommended then
  Replaced            the successor of an evicted pod runs with the new size
  NotResized          the resize failed and was rolled back; the line below has the reason
  Reverted            a lower limit led to kills, restarts or a pod that was not ready, and was rolled back from
                      every pod
  ConflictingWriter   another writer changed what memfit had set, and memfit ignores the pods for 24 hours
  RestartedForMemory  a pod was evicted for a fresh one, because the profile has drift.action: Restart
  MemoryLoaned        a container got a higher limit before the kernel killed it (sizing.rescue)
  LoanReturned        the loan has ended, for the reason in the line below

memfit keeps the last 16 changes, 20 kills and 8 stalls of a workload. What a new pod got when it was created is in
its annotation memfit.dev/injected. Nothing is written to the cluster.`

const historyExample = `  kubectl memfit history deployment/web -n shop

  # What was rolled back, and why
  kubectl memfit history web -o json | jq -r '.items[].change | select(.kind == "Reverted") | .why'`

func historyCommand() *cobra.Command {
	return aboutWorkload(&cobra.Command{
		Use:   "history WORKLOAD [-n NAMESPACE] [-o FORMAT]",
		Short: "Show what memfit changed on a workload's pods, and the outcome",
		Long:  historyLong, Example: historyExample,
	}).runs(showHistory)
}

func showHistory(v *verb) error {
	rec, err := v.workload()
	if err != nil {
		return err
	}
	h := report.HistoryOf(rec)
	return v.page("WorkloadHistoryList", h, h.Write)
}
