// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// during is a series with a value every five minutes.
func during(labels string, from, to int64) string {
	var points []string
	for at := from; at <= to; at += 300 {
		points = append(points, fmt.Sprintf(`[%d,"300"]`, at))
	}
	return fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(points, ","))
}

// TestHistoryOfSeveralClustersIsRefused: a global Thanos or Mimir has another cluster's workload of the same name.
func TestHistoryOfSeveralClustersIsRefused(t *testing.T) {
	const noID = `"namespace":"shop","pod":"db-0","container":"app"`
	both := func(a, b string) string { return a + "," + b }
	for name, tc := range map[string]struct{ series, want string }{
		"one": {both(during(`"cluster":"dev",`+c1, 300, 9000), during(`"cluster":"dev",`+c2, 300, 9000)), ""},
		"a label": {
			both(during(`"cluster":"dev",`+c1, 300, 600), during(`"cluster":"prod",`+c2, 300, 600)), `cluster="dev"`,
		},
		"another label, at another time": {
			both(during(`"k8s_cluster":"b",`+c1, 300, 600), during(`"k8s_cluster":"a",`+c2, 900, 1200)), `k8s_cluster="a"`,
		},
		"one pod name": {
			both(during(`"region":"eu",`+noID, 300, 9000), during(`"region":"us",`+noID, 300, 9000)), "the label region",
		},
		"one pod name, created again": {
			both(during(`"name":"a",`+noID, 300, 3000), during(`"name":"b",`+noID, 2700, 9000)), "",
		},
		"two Prometheus servers, and the UID": {
			both(during(`"replica":"a",`+c1, 300, 9000), during(`"replica":"b",`+c1, 300, 9000)), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := serving(t, map[string]string{"max_over_time(container_memory_rss": tc.series}), 0
			err := s.source(t, nil).History(t.Context(), web, Span{From: sec(0), To: sec(9000)}, func(memory.Sample) { n++ })
			switch {
			case tc.want == "" && (err != nil || n == 0):
				t.Errorf("%d samples, and %v", n, err)
			case tc.want != "" && (!errors.Is(err, ErrOtherCluster) || !strings.Contains(err.Error(), tc.want) || n > 0):
				t.Errorf("%d samples and %v, want %s", n, err, tc.want)
			}
		})
	}
}

// TestThePastJoinsThisCluster: what is measured now runs here.
func TestThePastJoinsThisCluster(t *testing.T) {
	here := Cluster{
		Pod:  func(_, name string) (types.UID, bool) { return uid, name == app.Pod },
		Node: func(name string) bool { return name == "n1" },
	}
	other := strings.ReplaceAll(c1, uid, "99999999-4e5f-6071-8293-a4b5c6d7e8f9")
	gone := strings.ReplaceAll(other, "x2x4z", "gone5")
	for name, tc := range map[string]struct {
		series string
		want   bool
	}{
		"nothing":                         {"", true},
		"its pod":                         {at(`"node":"n1",`+c1, "300"), true},
		"a pod that has just gone":        {at(`"node":"n1",`+gone, "300"), true},
		"a pod of another cluster":        {at(`"node":"n1",`+c1, "300") + "," + at(`"node":"x",`+gone, "300"), false},
		"a pod of the same name":          {at(`"node":"x",`+other, "300"), false},
		"no label of the node":            {at(gone, "300"), true},
		"a label with another name of it": {at(`"node":"x",`+c1, "300") + "," + at(`"node":"x",`+gone, "300"), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, map[string]string{"max_over_time(container_memory_working_set_bytes": tc.series})
			err := s.source(t, nil).CheckCluster(t.Context(), web, here)
			if errors.Is(err, ErrOtherCluster) == tc.want ||
				err != nil && !strings.Contains(err.Error(), "--prometheus-selector") {
				t.Errorf("it is %v", err)
			}
		})
	}
}

// TestTheSelectorIsInEveryQuery: in those of usage now as well.
func TestTheSelectorIsInEveryQuery(t *testing.T) {
	s := serving(t, map[string]string{"container_memory_rss": at(c1, "300")})
	source := s.source(t, func(o *Options) { o.Selector = `cluster="prod-1", env=~"a|b"` })
	if _, err := source.Read(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	span := Span{From: sec(0), To: sec(0).Add(time.Hour)}
	if err := source.History(t.Context(), web, span, func(memory.Sample) {}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 11 {
		t.Errorf("%d queries", len(s.asked))
	}
	for _, r := range s.asked {
		query := r.Form.Get("query")
		if strings.Count(query, `{container!=""`) != strings.Count(query, `container!="POD",cluster="prod-1", env=~"a|b",`) {
			t.Errorf("a query has no selector: %s", query)
		}
	}
	for _, wrong := range []string{`cluster`, `cluster=prod`, `{cluster="a"}`, `a="b"} or up{c="d"`, `a="b",`} {
		if _, err := New(Options{URL: "http://p", Selector: wrong}); err == nil || !strings.Contains(err.Error(), "LABEL=") {
			t.Errorf("the selector %s is accepted: %v", wrong, err)
		}
	}
}
