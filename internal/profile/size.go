// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/maintenance"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// The defaults of headroomPercent: usualHeadroom for a container's first two days, usualMinMargin later.
const usualHeadroom, usualMinMargin int32 = 15, 5

// SizePolicy returns the container's sizing policy for package recommend. c must have the defaults of the API.
func (c *Container) SizePolicy() recommend.Policy {
	s := &c.Sizing
	headroom, minMargin := usualHeadroom, usualMinMargin
	if s.HeadroomPercent != nil {
		headroom, minMargin = *s.HeadroomPercent, *s.HeadroomPercent
	}
	return recommend.Policy{
		RequestEqualsLimit: s.RequestPolicy == v1alpha1.RequestEqualsLimit,
		HeadroomPercent:    headroom,
		MinMarginPercent:   minMargin,
		KillPrice:          killPrice(s.Posture),
		LimitMin:           BytesOf(s.Limit.Min),
		LimitMax:           BytesOf(s.Limit.Max),
		RequestMin:         BytesOf(s.Request.Min),
		RequestMax:         BytesOf(s.Request.Max),
		DecreaseNever:      s.Decrease == v1alpha1.DecreaseNever,
		IncreaseAfterKill:  s.Increase == v1alpha1.IncreaseAfterKill,
		OOMFactorPercent:   *s.OOM.FactorPercent,
		OOMMinIncrease:     BytesOf(s.OOM.MinIncrease),
		MinChangePercent:   *s.Disruption.MinChangePercent,
	}
}

// killPrice returns the price of an OOM kill of a posture, which is a name or the price itself.
func killPrice(p v1alpha1.SizingPosture) memory.Bytes {
	switch p {
	case v1alpha1.PostureFrugal:
		return recommend.Frugal
	case v1alpha1.PostureBalanced:
		return recommend.Balanced
	case v1alpha1.PostureCautious:
		return recommend.Cautious
	}
	q, err := resource.ParseQuantity(string(p))
	if err != nil || q.Sign() <= 0 { // the API server refuses such postures
		return recommend.Balanced
	}
	return memory.FromQuantity(q)
}

// Rescues reports whether memfit may raise the limit of the running container before an OOM kill.
func (c *Container) Rescues() bool {
	mode := c.Sizing.Mode
	return c.Sizing.Rescue == v1alpha1.RescueEnabled &&
		(mode == v1alpha1.SizingInPlace || mode == v1alpha1.SizingInPlaceOrEvict)
}

// MaxUnavailable returns how many of a workload's replicas may be unavailable at the same time. A share is rounded
// down, and at least 1, so that a small workload is changed one pod at a time.
func MaxUnavailable(d *v1alpha1.DisruptionSpec, replicas int) int32 {
	most, err := intstr.GetScaledValueFromIntOrPercent(d.MaxUnavailable, replicas, false)
	if err != nil { // the API server refuses such values
		return 1
	}
	return int32(min(max(most, 1), math.MaxInt32))
}

// Windows returns the maintenance windows of a profile, and the errors of invalid ones, which never open.
func Windows(d *v1alpha1.DisruptionSpec) (maintenance.Windows, []string) {
	if d == nil {
		return nil, nil
	}
	var out maintenance.Windows
	var wrong []string
	for i, w := range d.Windows {
		parsed, err := maintenance.Parse(w.Schedule, w.Duration.Duration, w.TimeZone)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("spec.sizing.disruption.windows[%d].%v", i, err))
		}
		out = append(out, parsed)
	}
	return out, wrong
}

// BytesOf converts an optional quantity of the API; unset is 0.
func BytesOf(q *v1alpha1.MemoryQuantity) memory.Bytes {
	if q == nil {
		return 0
	}
	return memory.FromQuantity(q.Quantity)
}

// SizeOf converts a size of the API; APISize is the inverse. Unset is 0.
func SizeOf(s v1alpha1.Size) memory.Size {
	return memory.Size{Limit: memory.FromOptional(s.Limit), Request: memory.FromOptional(s.Request)}
}

// APISize converts a size to the API's type.
func APISize(s memory.Size) v1alpha1.Size {
	return v1alpha1.Size{Limit: format.Exact(s.Limit), Request: format.Exact(s.Request)}
}
