// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// TestWhatIsRememberedOfFormerWorkloads: for an hour, by name within one namespace, and of a bounded number.
func TestWhatIsRememberedOfFormerWorkloads(t *testing.T) {
	web, st := memory.WorkloadRef{Kind: "StatefulSet", Namespace: "shop", Name: "web"}, workload.NewState()
	var f formers
	f.keep(web, former{owner: "before", namespace: "ns", state: st, at: start})
	for name, tc := range map[string]struct {
		got  *workload.State
		want bool
	}{
		"created again":               {f.of(web, "now", "ns", start.Add(time.Minute)), true},
		"the same":                    {f.of(web, "before", "ns", start.Add(time.Minute)), false},
		"in a namespace of that name": {f.of(web, "now", "other", start.Add(time.Minute)), false},
		"two hours later":             {f.of(web, "now", "ns", start.Add(2*time.Hour)), false},
	} {
		if (tc.got != nil) != tc.want {
			t.Errorf("%s: it is %v, want %t", name, tc.got, tc.want)
		}
	}
	for i := range 2 * maxFormers {
		f.keep(memory.WorkloadRef{Kind: "Job", Name: fmt.Sprint(i)}, former{at: start.Add(time.Duration(i+1) * time.Second)})
	}
	if len(f.all) != maxFormers || f.of(web, "now", "ns", start) != nil {
		t.Errorf("%d are remembered, want the last %d", len(f.all), maxFormers)
	}
}
