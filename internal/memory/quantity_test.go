// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

// quantityBudget is what reading any quantity may take.
var quantityBudget = budget.Budget{Bytes: 64 << 10, CPU: time.Second}

func TestParseQuantityRefusesWhatTakesLong(t *testing.T) {
	for text, want := range map[string]string{
		"1e-999999999":             "exponent 999999999",
		"1E400":                    "exponent 400",
		"-1e+100":                  "exponent 100",
		"0e999999999":              "exponent 999999999",
		"1e-999999999\u00a0":       "exponent 999999999", // JSON decoding cuts off all that is a space
		strings.Repeat("9", 1<<20): "1048576 characters",
	} {
		budget.Check(t, quantityBudget, 0, func() {
			q, err := memory.ParseQuantity(text)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "512Mi") ||
				len(err.Error()) > 200 {
				t.Errorf("%.20s reads as %s (%v), want a short reason with %q", text, q.String(), err, want)
			}
		})
	}
}

func TestParseQuantityReadsEverySize(t *testing.T) {
	for text, want := range map[string]memory.Bytes{
		"512Mi": 512 * memory.MiB, "1e3": 1000, "1E3": 1000, "2E": 2e18, "1Ei": 1 << 60, "1e00000009": 1e9,
		"128974848000m": 128974848, "1e-9": 1, "1e99": memory.Max, "-5": 0,
		"9223372036854775807": memory.Max, "9223372036854775808": memory.Max, "100E": memory.Max, "0e9": 0,
	} {
		q, err := memory.ParseQuantity(text)
		if err != nil || memory.FromQuantity(q) != want {
			t.Errorf("%s is %d bytes (%v), want %d", text, memory.FromQuantity(q), err, want)
		}
	}
}

// TestFromQuantityIsBounded: the API server accepts quantities that are not amounts of memory, and values of its
// objects were parsed there.
func TestFromQuantityIsBounded(t *testing.T) {
	for text, want := range map[string]memory.Bytes{"1e99999999": memory.Max, "-1e99999999": 0, "0e999999999": 0} {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatal(err)
		}
		budget.Check(t, quantityBudget, 0, func() {
			if got := memory.FromQuantity(q); got != want {
				t.Errorf("%s is %d bytes, want %d", text, got, want)
			}
		})
	}
}

// FuzzParseQuantity: what is read is what Kubernetes reads, within the budget whatever comes.
func FuzzParseQuantity(f *testing.F) {
	for _, s := range []string{
		"512Mi", "1.5Gi", "1e-999999999", "1E400", "-1", "+1e+09", ".5", "1.", "0", "", "e9", "1e", "1Ki ",
		"12345678901234567890123",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		budget.Check(t, quantityBudget, 0, func() {
			got, err := memory.ParseQuantity(text)
			if err != nil {
				return
			}
			if want, err := resource.ParseQuantity(text); err != nil || want.Cmp(got) != 0 {
				t.Errorf("%q reads as %s, in Kubernetes as %s (%v)", text, got.String(), want.String(), err)
			}
			if b := memory.FromQuantity(got); b < 0 || got.Sign() > 0 && b == 0 {
				t.Errorf("%q is %d bytes", text, b)
			}
		})
	})
}
