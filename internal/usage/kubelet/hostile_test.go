// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage/stream"
)

// endless repeats a text after another one, for ever.
type endless struct {
	start, again string
	rest         string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.again
		if e.start != "" {
			e.rest, e.start = e.start, ""
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestAHostileKubeletCostsLittle: whatever a node answers, and for as long as it likes, memfit allocates no more than a
// few times what it reads of an honest one.
func TestAHostileKubeletCostsLittle(t *testing.T) {
	const container = `{"name":"a","memory":{"time":"2026-11-20T12:00:00Z","rssBytes":1}},`
	series := `container_oom_events_total{container="app",id="/kubepods/pod` + uid +
		`/c1",namespace="shop",pod="web-0"} 1` + "\n"
	summaries := func(r io.Reader) (kept int, err error) {
		err = DecodeSummary(http.MaxBytesReader(nil, io.NopCloser(r), int64(maxSummary)), func(memory.Sample) { kept++ })
		return kept, err
	}
	counters := func(r io.Reader) (int, error) {
		c, err := DecodeCounters(http.MaxBytesReader(nil, io.NopCloser(r), int64(maxCounters)), nil)
		return len(c), err
	}
	for what, tc := range map[string]struct {
		answer endless
		read   func(io.Reader) (int, error)
		want   error
	}{
		"a pod with endless containers": {
			endless{start: `{"pods":[{"containers":[`, again: container}, summaries, errTooMany,
		},
		"endless pods": {
			endless{
				start: `{"pods":[`,
				again: `{"podRef":{"name":"w","namespace":"s"},"containers":[` + strings.TrimSuffix(container, ",") + `]},`,
			},
			summaries, errTooMany,
		},
		"endless pods of long names": {
			endless{
				start: `{"pods":[`,
				again: fmt.Sprintf(`{"podRef":{"name":"%s","namespace":"s"},"containers":[]},`, strings.Repeat("n", 60_000)),
			},
			summaries, nil,
		},
		"endless space":           {endless{again: " "}, summaries, stream.ErrLong},
		"an endless name":         {endless{start: `{"pods":[{"podRef":{"name":"`, again: "n"}, summaries, stream.ErrLong},
		"an endless text":         {endless{start: `{"node":{"x":"`, again: "n"}, summaries, stream.ErrLong},
		"an endless number":       {endless{start: `{"node":`, again: "1"}, summaries, stream.ErrLong},
		"endless brackets":        {endless{start: `{"node":`, again: "["}, summaries, nil},
		"endless series":          {endless{again: series}, counters, errMuchKept},
		"endless lines of others": {endless{again: "other_series 1\n"}, counters, nil},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		kept, err := tc.read(&tc.answer)
		runtime.ReadMemStats(&after)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %d kept and error %v, want %v", what, kept, err, tc.want)
		}
		if took := memory.Bytes(after.TotalAlloc - before.TotalAlloc); took > 24*memory.MiB {
			t.Errorf("%s: %s were allocated", what, took)
		} else {
			t.Logf("%s: %s allocated, %d kept: %v", what, took, kept, err)
		}
	}
}
