// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/memfit/memfit/internal/memory"
)

var web = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}

// canned makes a source hear the same answer to everything, without a network.
func canned(s *Source, answer []byte) {
	c, err := api.NewClient(api.Config{Address: "http://p",
		RoundTripper: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer)), Header: http.Header{},
			}, nil
		})})
	if err != nil {
		panic(err)
	}
	s.api = v1.NewAPI(c)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func over(points ...string) string {
	return fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, c1, strings.Join(points, ","))
}

func TestHistory(t *testing.T) {
	s := serving(t, map[string]string{
		"max_over_time((container_memory_usage_bytes":      over(`[300,"360"]`),
		"min_over_time((container_memory_usage_bytes":      over(`[300,"215"]`),
		"max_over_time(container_memory_rss":               over(`[300,"310"]`, `[600,"320"]`),
		"max_over_time(container_memory_working_set_bytes": over(`[300,"410"]`, `[600,"420"]`),
		"min_over_time(container_memory_rss":               over(`[300,"210"]`),
		"min_over_time(container_memory_working_set_bytes": over(`[300,"220"]`, `[600,"0"]`),
	})
	var got []memory.Sample
	err := s.source(t, nil).History(
		t.Context(), web, Span{From: sec(17), To: sec(899)}, func(s memory.Sample) { got = append(got, s) },
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []memory.Sample{
		// the lowest of a step, in the middle of it
		{Container: app, Time: sec(150), RSS: 210, HasRSS: true, WorkingSet: 220, SharedAndKernel: 5, Exact: true},
		// the highest, at its end
		{Container: app, Time: sec(300), RSS: 310, HasRSS: true, WorkingSet: 410, SharedAndKernel: 50, Exact: true},
		{Container: app, Time: sec(600), RSS: 320, HasRSS: true, WorkingSet: 420}, // demand is unknown
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	r := s.asked[0].Form
	of := `{container!="",container!="POD",namespace="shop",` +
		`pod=~"web-[bcdfghjklmnpqrstvwxz2456789]{1,10}-[bcdfghjklmnpqrstvwxz2456789]{5}"}`
	wantQuery := strings.ReplaceAll("max_over_time((container_memory_usage_bytesX"+
		" - container_memory_total_active_file_bytesX - container_memory_total_inactive_file_bytesX"+
		" + container_memory_swapX or container_memory_usage_bytesX"+
		" - container_memory_total_active_file_bytesX - container_memory_total_inactive_file_bytesX)[5m:30s])", "X", of)
	if r.Get("query") != wantQuery || r.Get("start") != "300" || r.Get("end") != "600" || r.Get("step") != "300" {
		t.Errorf("asked %v, want %s from 300 to 600 every 300", r, wantQuery)
	}
}

func TestHistoryIsReadInChunksThatCoverIt(t *testing.T) {
	for name, test := range map[string]struct {
		span Span
		want []string
	}{
		"days of five minutes": {
			Span{From: sec(0), To: sec(0).Add(60 * time.Hour)}, []string{"300-86400", "86700-172800", "173100-216000"},
		},
		"short steps make short chunks: 10,000 points": {
			Span{From: sec(0), To: sec(200_000), Step: time.Second}, []string{"15-86400", "86415-172800", "172815-199995"},
		},
		"nothing to ask for":  {Span{From: sec(1000), To: sec(1001)}, nil},
		"the wrong way round": {Span{From: sec(9000), To: sec(1000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, nil)
			if err := s.source(t, nil).History(t.Context(), web, test.span, func(memory.Sample) {}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := 0; i < len(s.asked); i += 6 { // six queries each
				f := s.asked[i].Form
				got = append(got, f.Get("start")+"-"+f.Get("end"))
				start, _ := strconv.Atoi(f.Get("start"))
				end, _ := strconv.Atoi(f.Get("end"))
				step, _ := strconv.Atoi(f.Get("step"))
				if points := (end-start)/step + 1; points > 11_000 {
					t.Errorf("%d points in one query: Prometheus refuses more than 11,000", points)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHistorySaysWhose(t *testing.T) {
	s := serving(t, nil)
	s.Close()
	err := s.source(t, nil).History(t.Context(), web, Span{From: sec(0), To: sec(3600)}, func(memory.Sample) {})
	if err == nil || !strings.HasPrefix(err.Error(), "history of Deployment shop/web: prometheus at ") {
		t.Errorf("error is %v", err)
	}
}

func TestPodPattern(t *testing.T) {
	long := strings.Repeat("long-name-", 5) + "abc" // 53 characters
	for _, test := range []struct {
		kind, name string
		yes, no    []string
	}{
		{"Deployment", "web", []string{"web-6d4cf56db6-x2x4z", "web-2b-x2x4z"}, []string{
			"web-0", "web-x2x4z", "web-api-6d4cf56db6-x2x4z", "my-web-6d4cf56db6-x2x4z",
		}},
		{"Deployment", long, []string{long + "-2b4cx2x4z", long + "-6d4x2x4z"}, []string{long[:40] + "-6d4cx2x4z"}},
		{"Rollout", "web", []string{"web-6d4cf56db6-x2x4z"}, []string{"web-0"}},
		{"StatefulSet", "db", []string{"db-0", "db-17"}, []string{"db-main-0", "db-x2x4z"}},
		{"DaemonSet", "log", []string{"log-x2x4z"}, []string{"log-0", "log-6d4cf56db6-x2x4z"}},
		{"ReplicaSet", "rs", []string{"rs-x2x4z"}, []string{"rs-0"}},
		{"Job", "once", []string{"once-x2x4z", "once-3-x2x4z"}, []string{"once-more-x2x4z"}},
		{"CronJob", "nightly", []string{"nightly-29384756-x2x4z", "nightly-29384756-3-x2x4z"}, []string{"nightly-x2x4z"}},
		{"CronJob", long[:52], []string{(long[:52] + "-29384756-")[:58] + "x2x4z"}, []string{"nightly-x2x4z"}},
		{"Pod", "a.b", []string{"a.b"}, []string{"a-b", "a.b-x2x4z"}},
		{"CloneSet", "web", []string{"web-x2x4z", "web-6d4cf56db6-x2x4z"}, []string{"web-0", "web-api-6d4cf56db6-x2x4z"}},
	} {
		p := regexp.MustCompile("^(?:" + podPattern(memory.WorkloadRef{Kind: test.kind, Name: test.name}) + ")$")
		for _, pod := range test.yes {
			if !p.MatchString(pod) {
				t.Errorf("%s %s: %s does not match %s", test.kind, test.name, p, pod)
			}
		}
		for _, pod := range test.no {
			if p.MatchString(pod) {
				t.Errorf("%s %s: %s matches %s", test.kind, test.name, p, pod)
			}
		}
	}
}
