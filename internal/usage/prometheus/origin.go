// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// ErrOtherCluster is returned for series that may be of pods of another cluster. memfit then ignores their usage.
var ErrOtherCluster = errors.New(
	"these may be other clusters' pods of the same name: select this cluster's series with --prometheus-selector",
)

// overlap is how long two series of a container may coincide: Prometheus returns an ended container for some minutes.
const overlap = 10 * time.Minute

// origin detects whether the results of several queries are of more than one cluster.
type origin struct {
	step     time.Duration
	clusters map[model.LabelName]model.LabelValue // so far, by the label that names the cluster
}

// check returns an error if series are of several clusters: labels name different clusters, or a container of a pod
// whose UID is unknown has several values at the same times.
func (o *origin) check(matrix model.Matrix) error {
	byPod := map[memory.ContainerRef][]*model.SampleStream{}
	for _, series := range matrix {
		if series == nil {
			continue
		}
		for label, value := range series.Metric {
			if !strings.Contains(strings.ToLower(string(label)), "cluster") {
				continue
			}
			if known, found := o.clusters[label]; found && known != value {
				return fmt.Errorf("series have %s=%q and %s=%q: %w", label, min(known, value), label, max(known, value),
					ErrOtherCluster)
			}
			o.clusters[label] = value
		}
		if id, ok := identify(series.Metric); ok && id.cgroup == "" {
			byPod[id.ContainerRef] = append(byPod[id.ContainerRef], series)
		}
	}
	for ref, all := range byPod {
		if label := o.differ(all); label != "" {
			return fmt.Errorf("container %s of pod %s has several series at the same time, which differ in the label %s: %w",
				ref.Container, ref.Pod, label, ErrOtherCluster)
		}
	}
	return nil
}

// differ returns a label in which two series differ, if both have values for the same times longer than overlap; empty:
// no such series.
func (o *origin) differ(all []*model.SampleStream) model.LabelName {
	at, both := map[model.Time]*model.SampleStream{}, map[[2]*model.SampleStream]time.Duration{}
	for _, series := range all {
		for _, p := range series.Values {
			first, found := at[p.Timestamp]
			if !found {
				at[p.Timestamp] = series
				continue
			}
			pair := [2]*model.SampleStream{first, series}
			if both[pair] += o.step; both[pair] > overlap {
				return different(first.Metric, series.Metric)
			}
		}
	}
	return ""
}

// different returns the first label, by name, in which two series differ.
func different(a, b model.Metric) model.LabelName {
	names := []model.LabelName{"~"} // sorts after any label; some label differs, because no two series are equal
	for _, m := range []model.Metric{a, b} {
		for label := range m {
			if a[label] != b[label] {
				names = append(names, label)
			}
		}
	}
	return slices.Min(names)
}

// Cluster looks up objects of this cluster.
type Cluster struct {
	Pod  func(namespace, name string) (types.UID, bool)
	Node func(name string) bool
}

// current is how old the measurement of a running pod may be: two scrapes, and less than the time for which memfit
// remembers deleted nodes.
const current = 2 * time.Minute

// CheckCluster returns [ErrOtherCluster] if Prometheus has current series of the workload's pods on nodes that this
// cluster does not have. It ignores series without a label node, or in which that label is not the name of a node.
func (s *Source) CheckCluster(ctx context.Context, w memory.WorkloadRef, here Cluster) error {
	vector, err := s.instant(ctx, "PeakWorkingSet", workloadValues(w, current))
	if err != nil {
		return err
	}
	var elsewhere error
	for _, v := range vector {
		if v == nil {
			continue
		}
		id, ok := identify(v.Metric)
		node := string(v.Metric["node"])
		if !ok || node == "" || here.Node(node) {
			continue
		}
		uid, exists := here.Pod(id.Namespace, id.Pod)
		if exists && (id.UID == "" || id.UID == uid) {
			return nil // this cluster's pod: the label is not the name of a node
		}
		elsewhere = s.wrap(fmt.Errorf("pod %s runs on node %q, which is not of this cluster: %w",
			id.Pod, node, ErrOtherCluster))
	}
	return elsewhere
}
