// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asLua converts decoded JSON to Lua values, as Argo CD does for a health check.
func asLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, inner := range v {
			table.RawSetString(key, asLua(l, inner))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, inner := range v {
			table.Append(asLua(l, inner))
		}
		return table
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	}
	return lua.LNil
}

func TestHealth(t *testing.T) {
	check := healthCheck(t)
	condition := func(kind, value, reason string) map[string]any {
		return map[string]any{"type": kind, "status": value, "reason": reason, "message": "why"}
	}
	ready := func(observed int64, value, reason string, more ...any) map[string]any {
		return map[string]any{
			"observedGeneration": observed, "conditions": append([]any{condition("Ready", value, reason)}, more...),
		}
	}
	// cmd/manager/gitops_test.go checks with a real API server that memfit writes these statuses.
	for name, c := range map[string]struct {
		status map[string]any
		argo   string
		flux   status.Status
	}{
		"not seen by memfit yet": {map[string]any{"observedGeneration": int64(-1)}, "Progressing", status.InProgressStatus},
		"of an older generation": {ready(1, "True", "Effective"), "Progressing", status.InProgressStatus},
		"effective":              {ready(2, "True", "Effective"), "Healthy", status.CurrentStatus},
		"without pods":           {ready(2, "True", "NoPodsMatched"), "Healthy", status.CurrentStatus},
		"invalid": {
			ready(2, "False", "InvalidSpec", condition("Stalled", "True", "InvalidSpec")), "Degraded", status.FailedStatus,
		},
		"corrected, and not seen since": {
			ready(1, "False", "InvalidSpec", condition("Stalled", "True", "InvalidSpec")), "Progressing",
			status.InProgressStatus,
		},
	} {
		object := map[string]any{
			"apiVersion": "memfit.dev/v1alpha1", "kind": "MemoryProfile",
			"metadata": map[string]any{"name": "web", "namespace": "shop", "generation": int64(2)},
			"status":   c.status,
		}
		l := lua.NewState()
		l.SetGlobal("obj", asLua(l, object))
		if err := l.DoString(check); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		health, ok := l.Get(-1).(*lua.LTable)
		if !ok {
			t.Fatalf("%s: the check returns %v", name, l.Get(-1))
		}
		if got := health.RawGetString("status").String(); got != c.argo {
			t.Errorf("%s: Argo CD reports %s, want %s", name, got, c.argo)
		}
		l.Close()
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if result.Status != c.flux {
			t.Errorf("%s: Flux reports %s, want %s", name, result.Status, c.flux)
		}
	}
}
