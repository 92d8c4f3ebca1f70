// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestStringIsWhatPeopleWrite(t *testing.T) {
	for in, want := range map[Bytes]string{
		0: "0", 512: "512", 96 * KiB: "96Ki", 412 * MiB: "412Mi", GiB + 512*MiB: "1.5Gi", 4 * GiB: "4Gi",
		412*MiB + 300*KiB: "412Mi", 1023 * MiB: "1023Mi", 11*GiB + 600*MiB: "12Gi", Max: "8589934591Gi",
	} {
		if got := in.String(); got != want {
			t.Errorf("Bytes(%d).String() = %q, want %q", in, got, want)
		}
	}
}

func TestArithmeticSaturates(t *testing.T) {
	if got := Max.Plus(1); got != Max {
		t.Errorf("Max+1 = %d", got)
	}
	if got := MiB.Minus(GiB); got != 0 {
		t.Errorf("1Mi-1Gi = %d", got)
	}
	if got := Max.Percent(200); got != Max {
		t.Errorf("200%% of Max = %d", got)
	}
	if got := (512 * MiB).Percent(90); got != 483183820 {
		t.Errorf("90%% of 512Mi = %d", got)
	}
	if got := (100*MiB + 1).CeilTo(MiB); got != 101*MiB {
		t.Errorf("CeilTo = %d", got)
	}
	if got := (100*MiB + 1).FloorTo(MiB); got != 100*MiB {
		t.Errorf("FloorTo = %d", got)
	}
}

func TestQuantitiesRoundTrip(t *testing.T) {
	for in, want := range map[string]string{
		"128974848000m": "123Mi", "1G": "1000000000", "0.5Gi": "512Mi", "536870912": "512Mi",
	} {
		q := FromQuantity(resource.MustParse(in)).Quantity()
		if got := q.String(); got != want {
			t.Errorf("%s reads back as %s, want %s", in, got, want)
		}
	}
}

// TestExact: the text is that of the quantity, which the API server writes.
func TestExact(t *testing.T) {
	for _, b := range []Bytes{
		0, 1, 999, 1000, 1023, KiB, 1025, 1536, 1_000_000, MiB, 704 * MiB, 3 * GiB / 2, 5 << 40, 7 << 50, 1 << 60, Max,
		Max - 1,
	} {
		q := b.Quantity()
		if got, want := b.Exact(), q.String(); got != want {
			t.Errorf("%d is %q, want %q", int64(b), got, want)
		}
	}
}
