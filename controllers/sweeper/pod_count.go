// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// PodCount is how many pods a workload is to have; 0: unknown. The cache has metadata only, so this asks the API
// server each time.
func (c Finder) PodCount(ctx context.Context, ref memory.WorkloadRef) (int, error) {
	kind, known := workloadkind.Of(ref.APIVersion, ref.Kind)
	if !known || len(kind.PodCount) == 0 {
		return 0, nil
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	err := c.APIReader.Get(ctx, workloadKey(ref), object)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("reading how many pods %s is to have: %w", ref, err)
	}
	count, _, _ := unstructured.NestedInt64(object.Object, kind.PodCount...)
	return int(count), nil
}
