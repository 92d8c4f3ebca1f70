// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/test/budget"
)

// nameBudget is what naming a record may take.
var nameBudget = budget.Budget{Bytes: 64 << 10, PerByte: 16, CPU: time.Second}

// FuzzRecordName: whatever an owner reference made of a workload, its record has a name that the API server takes, and
// no other workload has the same. Names of kinds that memfit reads can be read back.
func FuzzRecordName(f *testing.F) {
	f.Add("apps/v1", "Deployment", "web", "apps/v1", "deployment", "web")
	f.Add("argoproj.io/v1", "Rollout", "web", "argoproj.io/v1", "RollOut", "web")
	f.Add("apps/v1", "Deployment", strings.Repeat("a", 253), "apps/v1", "Deployment", strings.Repeat("a", 252)+"b")
	f.Add("a-b/v1", "Kind", "c", "a/v1", "Kind", "b-c")
	f.Add("batch.volcano.sh/v1", "Job", "web", "batch/v1", "Job", "web")
	f.Fuzz(func(t *testing.T, group, kind, name, otherGroup, otherKind, otherName string) {
		one := memory.WorkloadRef{APIVersion: group, Kind: kind, Namespace: "shop", Name: name}
		two := memory.WorkloadRef{APIVersion: otherGroup, Kind: otherKind, Namespace: "shop", Name: otherName}
		if !owners.Plausible(one) || !owners.Plausible(two) {
			return // such a reference is nobody's: FuzzOwner of internal/owners
		}
		var record, other string
		budget.Check(t, nameBudget, len(group+kind+name), func() { record = RecordName(one) })
		other = RecordName(two)
		if !owners.ValidName(record) {
			t.Errorf("the record of %+v would be called %q", one, record)
		}
		// The version is not a part of what a workload is.
		if record == other && (groupOf(one) != groupOf(two) || one.Kind != two.Kind || one.Name != two.Name) {
			t.Errorf("%+v and %+v share the record %s", one, two, record)
		}
	})
}

func groupOf(w memory.WorkloadRef) string {
	group, _, found := strings.Cut(w.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}
