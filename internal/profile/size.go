// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/maintenance"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// SizePolicy is the owner's word about the size of the container in the terms of recommend.
func (c *Container) SizePolicy() recommend.Policy {
	s := &c.Sizing
	p := recommend.DefaultPolicy()
	p.RequestEqualsLimit = s.RequestPolicy == v1alpha1.RequestEqualsLimit
	p.DecreaseNever = s.Decrease == v1alpha1.DecreaseNever
	p.IncreaseAfterKill = s.Increase == v1alpha1.IncreaseAfterKill
	if s.HeadroomPercent != nil {
		p.HeadroomPercent = orNone(*s.HeadroomPercent)
	}
	if s.Posture != "" {
		p.Posture = recommend.Posture(s.Posture)
	}
	bytesOf(s.Limit, &p.LimitMin, &p.LimitMax)
	bytesOf(s.Request, &p.RequestMin, &p.RequestMax)
	if o := s.OOM; o != nil {
		if o.FactorPercent != nil {
			p.OOMFactorPercent = *o.FactorPercent
		}
		if o.MinIncrease != nil {
			p.OOMMinIncrease = memory.FromQuantity(o.MinIncrease.Quantity)
		}
	}
	if d := s.Disruption; d != nil && d.MinChangePercent != nil {
		p.MinChangePercent = orNone(*d.MinChangePercent)
	}
	return p
}

// Rescues reports whether memfit may raise the limit of the running container before the kernel kills: sizing.rescue is
// Enabled, and the mode in effect resizes running pods.
func (c *Container) Rescues() bool {
	mode := c.Sizing.Mode
	return c.Sizing.Rescue == v1alpha1.RescueEnabled &&
		(mode == v1alpha1.SizingInPlace || mode == v1alpha1.SizingInPlaceOrEvict)
}

// MaxUnavailable returns how many of a workload's replicas may be unavailable at the same time. A share is rounded
// down, and at least 1, so that a small workload is changed one pod at a time.
func MaxUnavailable(d *v1alpha1.DisruptionSpec, replicas int) int32 {
	if d == nil || d.MaxUnavailable == nil {
		return 1
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(d.MaxUnavailable, replicas, false)
	if err != nil { // the API server refuses it
		return 1
	}
	return int32(min(max(most, 1), math.MaxInt32))
}

// Windows are the maintenance windows of a profile, and what is wrong with those that cannot be read, which never open.
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

// orNone: recommend reads 0 as "the default" and -1 as none, because its zero value must work.
func orNone(percent int32) int32 {
	if percent == 0 {
		return -1
	}
	return percent
}

func bytesOf(b *v1alpha1.Bounds, lowest, highest *memory.Bytes) {
	if b == nil {
		return
	}
	if b.Min != nil {
		*lowest = memory.FromQuantity(b.Min.Quantity)
	}
	if b.Max != nil {
		*highest = memory.FromQuantity(b.Max.Quantity)
	}
}

// SizeOf is a size of the API in the terms of recommend, and APISize the way back. What is not set is 0.
func SizeOf(s v1alpha1.Size) memory.Size {
	var out memory.Size
	if s.Limit != nil {
		out.Limit = memory.FromQuantity(*s.Limit)
	}
	if s.Request != nil {
		out.Request = memory.FromQuantity(*s.Request)
	}
	return out
}

// APISize is a size in the terms of the API.
func APISize(s memory.Size) v1alpha1.Size {
	return v1alpha1.Size{Limit: amount(s.Limit), Request: amount(s.Request)}
}

func amount(b memory.Bytes) *resource.Quantity {
	if b <= 0 {
		return nil
	}
	q := b.Quantity()
	return &q
}
