// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/tree"
)

// many are the sizes of more containers than are kept.
func many(limit, request memory.Bytes) map[string]memory.Size {
	all := map[string]memory.Size{}
	for i := range 20 {
		all[fmt.Sprintf("c%02d", i)] = memory.Size{Limit: limit * memory.MiB, Request: request * memory.MiB}
	}
	return all
}

// TestChangesFitTheAPI: the API server refuses a whole status for one text that is too long or one kind that it does
// not know. Both may be in what another version of memfit kept.
func TestChangesFitTheAPI(t *testing.T) {
	text, err := os.ReadFile(
		filepath.Join(tree.Root(), "config", "crd", "bases", "memfit.dev_memoryrecommendations.yaml"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["recentChanges"].
		Items.Schema.Properties

	kinds := []rollout.FindingKind{
		rollout.Resized, rollout.Replaced, rollout.NotResized, rollout.Reverted, rollout.ConflictingWriter, rollout.Restarted,
		rollout.Loaned, rollout.Returned,
	}
	var state rollout.State
	for _, kind := range append(kinds, "FromTheFuture") {
		state.Changes = append(state.Changes, rollout.Change{
			Kind: kind, At: time.Unix(1e9, 0), Since: time.Unix(1e9, 0), Pod: "web-0", Pods: 1,
			Sizes: strings.Repeat("é", 4000), Why: strings.Repeat("w", 4000), From: many(100, 0), To: many(200, 50),
		})
	}
	records := changeRecords(&state)
	if len(records) != len(kinds) || len(fields["kind"].Enum) != len(kinds) {
		t.Errorf("%d kinds of %d are shown, and the API knows %d", len(records), len(kinds), len(fields["kind"].Enum))
	}
	known := map[string]bool{}
	for _, value := range fields["kind"].Enum {
		known[strings.Trim(string(value.Raw), `"`)] = true
	}
	for _, r := range records {
		if most := fields["sizes"].MaxItems; most == nil || int64(len(r.Sizes)) != *most {
			t.Errorf("%d sizes, the API takes %v", len(r.Sizes), most)
		} else if s := r.Sizes[1]; s.Container != "c01" || s.From.Limit.String() != "100Mi" || s.From.Request != nil ||
			s.To.Limit.String() != "200Mi" || s.To.Request.String() != "50Mi" {
			t.Errorf("sizes are %+v", s)
		}
		if !known[r.Kind] {
			t.Errorf("the API server would refuse kind %s", r.Kind)
		}
		for name, got := range map[string]string{"change": r.Change, "why": r.Why} {
			most := fields[name].MaxLength
			if most == nil || int64(utf8.RuneCountInString(got)) > *most || !strings.HasSuffix(got, "...") {
				t.Errorf("%s has %d characters, the API takes %v", name, utf8.RuneCountInString(got), most)
			}
		}
	}
}
