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

// ErrElsewhere means that series are of pods of another cluster, or of several. memfit ignores their usage.
var ErrElsewhere = errors.New(
	"these may be other clusters' pods of the same name: select this cluster's series with --prometheus-selector",
)

// overlap is how long two series of one container may have values for the same times: an ended container is shown for
// minutes.
const overlap = 10 * time.Minute

// origin is the cluster that series come from, over several queries.
type origin struct {
	step     time.Duration
	clusters map[model.LabelName]model.LabelValue
}

// check returns an error if series are of several sources: labels name different clusters, or a container of a pod
// without UID has several values at the same time.
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
					ErrElsewhere)
			}
			o.clusters[label] = value
		}
		if id, ok := identify(series.Metric); ok && id.cgroup == "" {
			byPod[id.ContainerRef] = append(byPod[id.ContainerRef], series)
		}
	}
	for of, all := range byPod {
		if label := o.differ(all); label != "" {
			return fmt.Errorf("container %s of pod %s has several series at the same time, which differ in the label %s: %w",
				of.Container, of.Pod, label, ErrElsewhere)
		}
	}
	return nil
}

// differ returns a label in which two series differ that have values for the same times; empty: no label.
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

// different returns the first label in which two series differ.
func different(a, b model.Metric) model.LabelName {
	names := []model.LabelName{"~"} // after any label; a server returns no series twice
	for _, m := range []model.Metric{a, b} {
		for label := range m {
			if a[label] != b[label] {
				names = append(names, label)
			}
		}
	}
	return slices.Min(names)
}

// Cluster knows what exists in this cluster.
type Cluster struct {
	Pod  func(namespace, name string) (types.UID, bool)
	Node func(name string) bool
}

// current is the age of the measurements of pods that run: of two scrapes, and less than nodes are remembered.
const current = 2 * time.Minute

// Joins returns [ErrElsewhere] if pods of the workload are measured now that run on nodes that this cluster does not
// have. Series without the label node, or with other values in it, show nothing.
func (s *Source) Joins(ctx context.Context, w memory.WorkloadRef, here Cluster) error {
	vector, err := s.instant(ctx, "PeakWorkingSet", workloadValues(w, current))
	if err != nil {
		return err
	}
	var strange error
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
			return nil // the label is not the name of a node
		}
		strange = s.wrap(fmt.Errorf("pod %s runs on node %q, which is not of this cluster: %w", id.Pod, node, ErrElsewhere))
	}
	return strange
}
