// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"math/bits"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bytes is an amount of memory in bytes. Its type prevents passing a MiB count, a percentage or a float as bytes.
// Arithmetic saturates at 0 and at 2^63-1.
type Bytes int64

// Binary units, as Kubernetes writes them.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30

	// Max is the largest amount; additions and multiplications stop here instead of wrapping around.
	Max Bytes = math.MaxInt64
)

// CgroupRounding is the most by which the kernel rounds down a cgroup's limit: one page, at most 64 KiB (arm64).
const CgroupRounding = 64 * KiB

// FromOptional returns [FromQuantity] of an optional field; 0: not set.
func FromOptional(q *resource.Quantity) Bytes {
	if q == nil {
		return 0
	}
	return FromQuantity(*q)
}

// FromQuantity converts a Kubernetes quantity, rounding fractions up. Negative quantities become 0. Quantities above
// [Max] become Max: the exact value of "1e99999999" would need 40 MB.
func FromQuantity(q resource.Quantity) Bytes {
	if q.Sign() <= 0 {
		return 0
	}
	if n, exact := q.AsInt64(); exact {
		return Bytes(n)
	}
	if q.AsApproximateFloat64() >= float64(Max) {
		return Max
	}
	return Bytes(q.Value())
}

// Quantity returns the canonical Kubernetes form: binary suffixes, never millibytes.
func (b Bytes) Quantity() resource.Quantity {
	return *resource.NewQuantity(int64(b), resource.BinarySI)
}

// Exact returns the text of [Bytes.Quantity] ("512Mi", "1536", "1Ei") in a tenth of the time.
func (b Bytes) Exact() string {
	if b < KiB { // written in units of 1000
		q := b.Quantity()
		return q.String()
	}
	unit := 0
	for ; b%KiB == 0; b /= KiB {
		unit++
	}
	return strconv.FormatInt(int64(b), 10) + [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}[unit]
}

// OrNone returns [Bytes.String], or "none" if b is 0 (not set) or [Max] (unlimited).
func (b Bytes) OrNone() string {
	if b == 0 || b == Max {
		return "none"
	}
	return b.String()
}

// Plus adds, saturating at [Max].
func (b Bytes) Plus(c Bytes) Bytes {
	if c > 0 && b > Max-c {
		return Max
	}
	return max(b+c, 0)
}

// Minus subtracts, saturating at 0.
func (b Bytes) Minus(c Bytes) Bytes {
	return max(b-c, 0)
}

// Percent returns b*percent/100, computed in 128 bits, rounded down, saturating at [Max]. Negative percentages give 0.
func (b Bytes) Percent(percent int32) Bytes {
	if b <= 0 || percent <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(b), uint64(percent))
	if hi >= 100 {
		return Max
	}
	q, _ := bits.Div64(hi, lo, 100)
	return FromUint64(q)
}

// CeilTo rounds up to a multiple of unit.
func (b Bytes) CeilTo(unit Bytes) Bytes {
	if b%unit == 0 {
		return b
	}
	return b.Minus(b % unit).Plus(unit)
}

// FloorTo rounds down to a multiple of unit.
func (b Bytes) FloorTo(unit Bytes) Bytes { return b - b%unit }

// MiB returns the amount in whole MiB, rounded down: the unit in V8 and JVM options.
func (b Bytes) MiB() int64 { return int64(b / MiB) }

// String formats the amount for users, rounded to nearest, in the largest unit (up to Gi) that is not larger than b.
// Below 10 units it has one decimal ("1.5Gi", "96Ki").
func (b Bytes) String() string {
	units := []struct {
		size Bytes
		name string
	}{{GiB, "Gi"}, {MiB, "Mi"}, {KiB, "Ki"}}
	for _, u := range units {
		if b < u.size {
			continue
		}
		if b%u.size != 0 && b < 10*u.size {
			return strconv.FormatFloat(math.Round(float64(b)/float64(u.size)*10)/10, 'f', -1, 64) + u.name
		}
		return strconv.FormatInt(int64(b.Plus(u.size/2)/u.size), 10) + u.name
	}
	return strconv.FormatInt(int64(b), 10)
}

// FromUint64 converts an unsigned amount, as the kernel reports it, saturating at [Max].
func FromUint64(n uint64) Bytes { return Bytes(min(n, uint64(Max))) }
