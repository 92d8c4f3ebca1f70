// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/period"
)

// tuning lays the entry's tuning over the profile's, field by field.
//
// mode and conflictPolicy are different: API servers of before filled their defaults into every tuning they stored, so
// that an entry that only sets arenaMax may look as if it also asked for mode: Inject. There the more careful of the
// two is taken. An entry can make a container more careful than its profile, never less.
func tuning(base v1alpha1.TuningSpec, entry *v1alpha1.ContainerPolicy) v1alpha1.TuningSpec {
	if entry != nil && entry.Tuning != nil {
		base = overlay(base, *entry.Tuning)
	}
	base.Mode = orDefault(base.Mode, v1alpha1.TuningInject)
	base.ConflictPolicy = orDefault(base.ConflictPolicy, v1alpha1.KeepUser)
	base.ResizePolicy = orDefault(base.ResizePolicy, v1alpha1.ResizeRestartContainer)
	return base
}

func overlay(base, over v1alpha1.TuningSpec) v1alpha1.TuningSpec {
	base.Mode = careful(base.Mode, over.Mode)
	base.ConflictPolicy, base.Replace = overlayConflict(base, over)
	if over.HeapPercent != nil || over.HeapLimit != nil { // the two exclude each other, so they are replaced together
		base.HeapPercent, base.HeapLimit = over.HeapPercent, over.HeapLimit
	}
	base.Processes = orPointer(over.Processes, base.Processes)
	base.Reserve = orPointer(over.Reserve, base.Reserve)
	base.ArenaMax = orPointer(over.ArenaMax, base.ArenaMax)
	base.TrimThreshold = orPointer(over.TrimThreshold, base.TrimThreshold)
	base.TrimInterval = orPointer(over.TrimInterval, base.TrimInterval)
	base.ResizePolicy = orDefault(over.ResizePolicy, base.ResizePolicy)
	base.Go = orPointer(over.Go, base.Go)
	base.JVM = orPointer(over.JVM, base.JVM)
	base.NodeJS = orPointer(over.NodeJS, base.NodeJS)
	base.DotNet = orPointer(over.DotNet, base.DotNet)
	return base
}

func careful(a, b v1alpha1.TuningMode) v1alpha1.TuningMode {
	for _, m := range []v1alpha1.TuningMode{v1alpha1.TuningOff, v1alpha1.TuningDryRun} {
		if a == m || b == m {
			return m
		}
	}
	return v1alpha1.TuningInject
}

// overlayConflict lets an entry replace what the profile replaces, or less; an entry that says Replace on its own
// account replaces what it names.
func overlayConflict(base, over v1alpha1.TuningSpec) (v1alpha1.ConflictPolicy, []v1alpha1.Setting) {
	if over.ConflictPolicy != v1alpha1.Replace {
		return v1alpha1.KeepUser, nil
	}
	if len(over.Replace) == 0 {
		return v1alpha1.Replace, base.Replace
	}
	return v1alpha1.Replace, over.Replace
}

// The defaults of sizing, as documented on the API's fields, where neither the profile nor what it inherits says
// anything. Those of drift and of what is left of disruption are with the packages that read them. What a profile sets
// is real time; a default is a period of evidence.
const (
	defaultHeadroomPercent  int32 = 15
	defaultOOMFactorPercent int32 = 150
	defaultMaxUnavailable   int32 = 1
	defaultMinChangePercent int32 = 10
	defaultCooldown               = period.Hour
)

var (
	defaultOOMMinIncrease = resource.MustParse("64Mi")
	defaultMinimum        = resource.MustParse("16Mi")
)

func sizing(base v1alpha1.SizingSpec, entry *v1alpha1.ContainerPolicy) v1alpha1.SizingSpec {
	if entry != nil {
		base.Limit = orPointer(entry.Limit, base.Limit)
		base.Request = orPointer(entry.Request, base.Request)
	}
	base.Mode = orDefault(base.Mode, v1alpha1.SizingRecommend)
	base.RequestPolicy = orDefault(base.RequestPolicy, v1alpha1.RequestPercentile)
	base.HeadroomPercent = orPointer(base.HeadroomPercent, new(defaultHeadroomPercent))
	base.Posture = orDefault(base.Posture, v1alpha1.PostureBalanced)
	base.Limit, base.Request = bounds(base.Limit), bounds(base.Request)
	base.Decrease = orDefault(base.Decrease, v1alpha1.DecreaseAllowed)
	base.Increase = orDefault(base.Increase, v1alpha1.IncreaseAllowed)
	base.OOM = oom(base.OOM)
	base.Disruption = disruption(base.Disruption)
	return base
}

func bounds(b *v1alpha1.Bounds) *v1alpha1.Bounds {
	if b == nil {
		return &v1alpha1.Bounds{Min: &defaultMinimum}
	}
	return &v1alpha1.Bounds{Min: orPointer(b.Min, &defaultMinimum), Max: b.Max}
}

func oom(o *v1alpha1.OOMSpec) *v1alpha1.OOMSpec {
	filled := v1alpha1.OOMSpec{}
	if o != nil {
		filled = *o
	}
	filled.FactorPercent = orPointer(filled.FactorPercent, new(defaultOOMFactorPercent))
	filled.MinIncrease = orPointer(filled.MinIncrease, &defaultOOMMinIncrease)
	return &filled
}

func disruption(d *v1alpha1.DisruptionSpec) *v1alpha1.DisruptionSpec {
	filled := v1alpha1.DisruptionSpec{}
	if d != nil {
		filled = *d
	}
	filled.Cooldown = orPointer(filled.Cooldown, &metav1.Duration{Duration: defaultCooldown.Duration()})
	filled.MaxUnavailable = orPointer(filled.MaxUnavailable, new(defaultMaxUnavailable))
	filled.MinChangePercent = orPointer(filled.MinChangePercent, new(defaultMinChangePercent))
	filled.SingleReplica = orDefault(filled.SingleReplica, "Never")
	return &filled
}

func orDefault[T ~string](value, fallback T) T {
	if value == "" {
		return fallback
	}
	return value
}

func orPointer[T any](value, fallback *T) *T {
	if value == nil {
		return fallback
	}
	return value
}
