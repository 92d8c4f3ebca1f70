// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/export"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const exportLong = `Write the recommended sizes as patches for Git, with a comment above each: the current size, the recommended size
and why.

Formats:
  kustomize    strategic merge patches, for patches: of a kustomization (default)
  json6902     JSON patches by container index, each with a test of the container's name
  helm-values  resources of each container, as most charts use them
  ssa          manifests for server-side apply that hold the memory fields only

Without WORKLOAD, every workload of the namespace is exported. Equal recommendations give equal bytes. A container
without a number, and a workload without a pod template of its own (a bare pod), is left out with a comment that gives
the reason.
A step is exported as json6902 for the object that has its template: Task or Pipeline (Tekton),
WorkflowTemplate or CronWorkflow (Argo Workflows). Nothing is written to the cluster.
--pull-request writes the same numbers with their reasons as the text of a pull request.

export priors writes what memfit learned about young containers, by image and a hash of command and arguments
(-n: the namespace that memfit runs in).
After kubectl apply, memfit in another cluster adds it to what it has learned, within ten minutes.

Exit codes:
  0  done, even if some workloads were left out (standard error names them)
  2  nothing could be exported: no such workload, no recommendation, or no permission`

const exportExample = `  # All of a namespace, next to its kustomization
  kubectl memfit export -n shop > memory.yaml      # kustomization.yaml: patches: [{path: memory.yaml}]

  # One workload, for a chart
  kubectl memfit export -n shop deployment/web -o helm-values > values-memory.yaml

  # With the text of a pull request
  kubectl memfit export -n shop --pull-request body.md > memory.yaml

  # What staging learned, for production
  kubectl memfit export priors -n memfit-system --context staging | kubectl apply --context production -f -`

func exportCommand() *cobra.Command {
	v := readingAll(&cobra.Command{
		Use:   "export [-n NAMESPACE | -A] [WORKLOAD...] [-o kustomize|json6902|helm-values|ssa]",
		Short: "Write recommended sizes as patches for Git",
		Long:  exportLong, Example: exportExample, Args: cobra.ArbitraryArgs,
	})
	v.prints(export.Formats[0], export.Formats...)
	var noNamespace bool
	v.Flags().BoolVar(
		&noNamespace, "no-namespace", false, "leave metadata.namespace out (kustomize), for bases without one",
	)
	var body string
	v.Flags().StringVar(&body, "pull-request", "", "also write to this file what the patches change and why, in Markdown")
	v.ValidArgsFunction = v.offering(math.MaxInt, workloads)
	v.AddCommand(priorsCommand())
	return v.runs(func(v *verb) error { return exports(v, noNamespace, body) })
}

func priorsCommand() *cobra.Command {
	return reading(&cobra.Command{
		Use:   "priors -n NAMESPACE",
		Short: "Write what memfit learned about young containers, for kubectl apply in another cluster",
	}).runs(exportPriors)
}

func exportPriors(v *verb) error {
	var text []byte
	err := v.cluster.EachCheckpoint(v.Context(), func(checkpoint *v1alpha1.MemoryCheckpoint) {
		if checkpoint.Name == v1alpha1.PriorsName {
			text = checkpoint.Status.Observed
		}
	})
	switch {
	case err != nil:
		return err
	case text == nil:
		return fmt.Errorf(
			"nothing was learned in %s: name the namespace of memfit with -n (or is learning off, with --learn-priors=false?)",
			v.place(),
		)
	}
	priors, err := export.Priors(v.cluster.Namespace, text)
	if err != nil {
		return err
	}
	_, err = v.OutOrStdout().Write(priors)
	return err
}

// exports writes patches, and to the file body, if it has a name, the text of a pull request.
func exports(v *verb, noNamespace bool, body string) error {
	recs, err := v.cluster.Recommendations(v.Context())
	if err != nil {
		return err
	}
	if len(recs) == 0 {
		return fmt.Errorf(
			"no workload in %s is governed by memfit, so nothing can be exported (kubectl memfit status shows how to opt in)",
			v.place(),
		)
	}
	sources, err := v.sources(recs)
	if err != nil {
		return err
	}
	result, err := export.Write(sources, export.Options{Format: v.output, NoNamespace: noNamespace})
	if err != nil {
		return err
	}
	if body != "" {
		if err := os.WriteFile(body, result.Markdown, 0o600); err != nil {
			return fmt.Errorf("--pull-request: %w", err)
		}
	}
	if _, err := v.OutOrStdout().Write(result.Text); err != nil {
		return fmt.Errorf("writing the patches: %w", err)
	}
	for _, text := range result.LeftOut {
		v.note("%s", text)
	}
	if result.Exported == 0 {
		return exit(exitFailed)
	}
	return nil
}

// sources returns the named workloads without duplicates; all if none was named.
func (v *verb) sources(recs []v1alpha1.MemoryRecommendation) (all []export.Source, err error) {
	add := func(rec *v1alpha1.MemoryRecommendation) {
		all = append(all, export.SourceOf(rec, func(ref v1alpha1.WorkloadReference) (*unstructured.Unstructured, error) {
			return v.cluster.Workload(v.Context(), rec.Namespace, ref)
		}))
	}
	for _, name := range v.args {
		rec, err := report.Find(recs, name, v.place())
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(s export.Source) bool { return s.Recommendation == rec }) {
			add(rec)
		}
	}
	for i := range recs {
		if len(v.args) == 0 {
			add(&recs[i])
		}
	}
	return all, nil
}
