// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/picture"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/workloadkind"
)

const mapLong = `Draw the memory of a pod: a bar for each container, with a segment for each part of its resident
memory, the limit as a mark, and the numbers below. Free memory is hatched (lower case on a terminal). Unexplained
memory is always shown.

For a workload, the command draws the pod with the newest OOM kill or stall; standard error names the other pods.

The numbers are from the pod's MemorySnapshot, which memfit's agent on the node writes; the first line has its time.

  --pages  also draw each memory region block by block: in use, partly free, resident and free, or not in RAM. The
           snapshot has this map of pages only while the pod has the annotation memfit.dev/map=true. -o svg always
           draws the map if the snapshot has one

Colors only on a terminal; NO_COLOR=1 turns them off. Nothing is written to the cluster.`

const mapExample = `  kubectl memfit map pod/web-7d9f8 -n shop

  # One container, as a picture for a report
  kubectl memfit map web-7d9f8 -n shop -c app -o svg > web.svg`

func mapCommand() *cobra.Command {
	v := newVerb(&cobra.Command{
		Use:   "map POD|WORKLOAD [-n NAMESPACE] [-c CONTAINER] [--pages] [-o FORMAT]",
		Short: "Draw the memory of a pod",
		Long:  mapLong, Example: mapExample,
		Args: exactlyOne("name one pod or workload, as in: kubectl memfit map pod/web-7d9f8 (kubectl get pods lists them)"),
	})
	var container string
	var pages bool
	v.addOutput("", slices.Concat([]string{"svg"}, listing.OfPage)...)
	v.Flags().StringVarP(&container, "container", "c", "", "only this container")
	v.Flags().BoolVar(&pages, "pages", false, "also draw each memory region block by block")
	v.ValidArgsFunction = v.completeArgs(1, inspectedPods)
	return v.withRun(func(v *verb) error { return draw(v, container, pages) })
}

func draw(v *verb, container string, pages bool) error {
	recs, _ := v.cluster.Recommendations(v.Context()) // on error, pods are matched by owner
	rec, _ := report.Find(recs, v.args[0], v.place())
	snapshot, err := v.snapshot(v.args[0], rec)
	if err != nil {
		return err
	}
	namespace, pod := snapshot.Namespace, snapshot.Name
	drawn, err := picture.New(snapshot, container)
	if err != nil {
		return fmt.Errorf("drawing pod %s/%s: %w", namespace, pod, err)
	}
	if v.output == "svg" {
		return drawn.WriteSVG(v.OutOrStdout())
	}
	return v.page(snapshot.Kind, snapshot, func(w io.Writer, colors listing.Colors) error {
		if pages && !drawn.Mapped() {
			v.warn("the snapshot has no map of pages; to request a map:\n  kubectl annotate pod -n %s %s %s=true\n"+
				"Later, remove the annotation with %s-", namespace, pod, v1alpha1.MapAnnotation, v1alpha1.MapAnnotation)
		}
		return drawn.WriteText(w, colors, pages)
	})
}

// podName returns the name in "web-7d9f8", "pod/web-7d9f8" or "po/web-7d9f8", and false for another kind.
func podName(text string) (string, bool) {
	kind, name, typed := strings.Cut(text, "/")
	if !typed {
		return text, true
	}
	pod := workloadkind.Pod()
	return name, workloadkind.Called(pod.APIVersion(), pod.Name, kind)
}
