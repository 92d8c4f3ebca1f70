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
  kustomize    strategic merge patches, for the patches field of a kustomization (default)
  json6902     JSON patches by container index, each with a test of the container's name
  helm-values  resources of each container, in the form that most charts use
  ssa          manifests for server-side apply, with the memory fields only

Without WORKLOAD, the command exports every workload of the namespace. The same recommendations always give the same
output. Containers without a recommended size and workloads without a pod template (bare pods) are left out; comments
give the reasons. A pipeline step can only be exported with -o json6902, for the object with its template: a Task or
Pipeline (Tekton), WorkflowTemplate or CronWorkflow (Argo Workflows). Nothing is written to the cluster.

export priors writes what memfit observed about containers in their first two days, by image and a hash of command and
arguments; -n names the namespace of memfit. If you apply the output in another cluster, memfit there merges it within
ten minutes.

Exit codes:
  0  done, even if some workloads were left out (standard error names them)
  2  nothing could be exported: no such workload, no recommendation, or no permission`

const exportExample = `  # All of a namespace, next to its kustomization
  kubectl memfit export -n shop > memory.yaml      # kustomization.yaml: patches: [{path: memory.yaml}]

  # One workload, for a chart
  kubectl memfit export -n shop deployment/web -o helm-values > values-memory.yaml

  # Patches, and the text of a pull request with the reasons
  kubectl memfit export -n shop --pull-request body.md > memory.yaml

  # What staging learned, for production
  kubectl memfit export priors -n memfit-system --context staging | kubectl apply --context production -f -`

func exportCommand() *cobra.Command {
	v := newVerbAllNamespaces(&cobra.Command{
		Use:   "export [-n NAMESPACE | -A] [WORKLOAD...] [-o kustomize|json6902|helm-values|ssa]",
		Short: "Write recommended sizes as patches for Git",
		Long:  exportLong, Example: exportExample, Args: cobra.ArbitraryArgs,
	})
	v.addOutput(export.Formats[0], export.Formats...)
	var noNamespace bool
	v.Flags().BoolVar(
		&noNamespace, "no-namespace", false, "omit metadata.namespace (kustomize only), for bases without a namespace",
	)
	var body string
	v.Flags().StringVar(&body, "pull-request", "", "file for the text of a pull request: the changes and why, in Markdown")
	v.ValidArgsFunction = v.completeArgs(math.MaxInt, workloads)
	v.AddCommand(priorsCommand())
	return v.withRun(func(v *verb) error { return exportPatches(v, noNamespace, body) })
}

func priorsCommand() *cobra.Command {
	return newVerb(&cobra.Command{
		Use:   "priors -n NAMESPACE",
		Short: "Write what memfit observed about containers in their first two days, for kubectl apply in another cluster",
	}).withRun(exportPriors)
}

func exportPriors(v *verb) error {
	var learned []byte
	err := v.cluster.EachCheckpoint(v.Context(), func(checkpoint *v1alpha1.MemoryCheckpoint) {
		if checkpoint.Name == v1alpha1.PriorsName {
			learned = checkpoint.Status.Observed
		}
	})
	switch {
	case err != nil:
		return err
	case learned == nil:
		return fmt.Errorf(
			"no learned data in %s: name memfit's namespace with -n, and check that the manager was not started with "+
				"--learn-priors=false", v.place(),
		)
	}
	priors, err := export.Priors(v.cluster.Namespace, learned)
	if err != nil {
		return err
	}
	_, err = v.OutOrStdout().Write(priors)
	return err
}

// exportPatches writes patches to standard output and, if body is set, the text of a pull request to the file body.
func exportPatches(v *verb, noNamespace bool, body string) error {
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

// sources returns the workloads that the arguments name, without duplicates, or all workloads without arguments.
func (v *verb) sources(recs []v1alpha1.MemoryRecommendation) (all []export.Source, err error) {
	add := func(rec *v1alpha1.MemoryRecommendation) {
		all = append(all, export.SourceOf(rec, func(ref v1alpha1.WorkloadReference) (*unstructured.Unstructured, error) {
			return v.cluster.Workload(v.Context(), rec.Namespace, ref)
		}))
	}
	if len(v.args) == 0 {
		for i := range recs {
			add(&recs[i])
		}
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
	return all, nil
}
