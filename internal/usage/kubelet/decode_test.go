// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

func decoded(r io.Reader) ([]memory.Sample, error) {
	var all []memory.Sample
	err := DecodeSummary(r, func(s memory.Sample) { all = append(all, s) })
	return all, err
}

// doc wraps the containers of one pod into a summary.
func doc(containers string) string {
	return `{"node":{"nodeName":"n1"},"pods":[{"podRef":{"name":"web-0","namespace":"shop","uid":"u1"},"containers":[` +
		containers + `]}]}`
}

func swapped(s memory.Sample, by memory.Bytes) memory.Sample {
	s.Swap = by
	return s
}

func TestDecodeSummary(t *testing.T) {
	sample := func(rss, ws memory.Bytes, hasRSS bool) memory.Sample {
		return memory.Sample{
			Container: memory.ContainerRef{Namespace: "shop", Pod: "web-0", UID: "u1", Container: "app"},
			Time:      measured, Started: measured.Add(-time.Hour), RSS: rss, WorkingSet: ws, HasRSS: hasRSS,
		}
	}
	const head = `"name":"app","startTime":"2026-11-20T13:00:07Z","memory":{"time":"2026-11-20T14:00:07Z",`
	for name, test := range map[string]struct {
		in   string
		want []memory.Sample
	}{
		"both figures": {
			doc(`{` + head + `"rssBytes":300,"workingSetBytes":400}}`), []memory.Sample{sample(300, 400, true)},
		},
		"Windows has no RSS: unknown, not 0": {
			doc(`{` + head + `"workingSetBytes":400}}`), []memory.Sample{sample(0, 400, false)},
		},
		"RSS is null": {
			doc(`{` + head + `"rssBytes":null,"workingSetBytes":400}}`), []memory.Sample{sample(0, 400, false)},
		},
		"RSS is more than there is": {
			doc(`{` + head + `"rssBytes":18446744073709551615,"workingSetBytes":400}}`), []memory.Sample{sample(0, 400, false)},
		},
		"an RSS of 0 is an answer": {
			doc(`{` + head + `"rssBytes":0,"workingSetBytes":400}}`), []memory.Sample{sample(0, 400, true)},
		},
		"what is swapped out": {
			doc(`{` + head + `"rssBytes":300,"workingSetBytes":400},` +
				`"swap":{"time":"2026-11-20T13:59:57Z","swapUsageBytes":55}}`),
			[]memory.Sample{swapped(sample(300, 400, true), 55)},
		},
		"swap that is not told": {
			doc(`{` + head + `"rssBytes":300,"workingSetBytes":400},"swap":{"swapUsageBytes":null}}`),
			[]memory.Sample{sample(300, 400, true)},
		},
		"RSS only":   {doc(`{` + head + `"rssBytes":300}}`), []memory.Sample{sample(300, 0, true)}},
		"no figures": {doc(`{` + head + `"usageBytes":9}}`), nil},
		"all that tells a stall": {
			doc(`{` + head + `"usageBytes":500,"rssBytes":300,"workingSetBytes":400,"majorPageFaults":77,"psi":{` +
				`"full":{"total":9000,"avg10":1.5,"avg300":0.29},"some":{"total":1,"avg300":7}}}}`),
			[]memory.Sample{with(sample(300, 400, true), func(s *memory.Sample) {
				s.Usage, s.MajorFaults, s.HasMajorFaults, s.WaitedPercent = 500, 77, true, 0.29
			})},
		},
		"no major fault is an answer, no pressure is none": {
			doc(
				`{` + head + `"rssBytes":300,"workingSetBytes":400,"majorPageFaults":0,"psi":{"full":{"total":0},"some":null}}}`,
			),
			[]memory.Sample{with(sample(300, 400, true), func(s *memory.Sample) { s.HasMajorFaults = true })},
		},
		"a share of more than all of the time": {
			doc(`{` + head + `"rssBytes":300,"workingSetBytes":400,"psi":{"full":{"avg300":101}}}}`),
			[]memory.Sample{sample(300, 400, true)},
		},
		"a share of less than none": {
			doc(`{` + head + `"rssBytes":300,"workingSetBytes":400,"psi":{"full":{"avg300":-1}}}}`),
			[]memory.Sample{sample(300, 400, true)},
		},
		"nothing but zeros: its cgroup is gone":    {doc(`{` + head + `"rssBytes":0,"workingSetBytes":0}}`), nil},
		"no memory at all, as in its first second": {doc(`{"name":"app","startTime":"2026-11-20T13:00:07Z"}`), nil},
		"nobody knows when":                        {doc(`{"name":"app","memory":{"rssBytes":300}}`), nil},
		"no name":                                  {doc(`{"memory":{"time":"2026-11-20T14:00:07Z","rssBytes":300}}`), nil},
		"the pod's name comes last, in odd spelling": {
			`{"pods":[{"containers":[{` + head +
				`"rssBytes":300,"workingSetBytes":400}}],"podRef":{"uid":"u1","namespace":"sh\u006fp","name":"web-0"}}]}`,
			[]memory.Sample{sample(300, 400, true)},
		},
		"a pod without a name": {`{"pods":[{"containers":[{` + head + `"rssBytes":300}}]}]}`, nil},
		"figures of the pod are nobody's": {
			`{"pods":[{"podRef":{"name":"a","namespace":"b"},"memory":{"time":"2026-11-20T14:00:07Z","rssBytes":1}}]}`, nil,
		},
		"system containers are not ours": {`{"node":{"systemContainers":[{` + head + `"rssBytes":300}}]},"pods":[]}`, nil},
		"an empty node":                  {`{"node":{},"pods":[]}`, nil},
		"an empty node, as Go writes it": {`{"node":{},"pods":null}`, nil},
		"things that are not invented yet": {
			doc(
				`{"new":[{"x":["}",{"y":"\"]"}]}],` + head + `"more":{"a":[1,2]},"rssBytes":300,"workingSetBytes":400},"z":true}`,
			),
			[]memory.Sample{sample(300, 400, true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for chunks, r := range map[string]io.Reader{
				"whole": strings.NewReader(test.in), "byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
				"with the error at once": iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				got, err := decoded(r)
				if err != nil {
					t.Fatalf("%s: %v", chunks, err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s: samples (-want +got):\n%s", chunks, diff)
				}
			}
		})
	}
}

// TestWhoseSwapItIs: of a container that cAdvisor does not know, a kubelet reports that it has no swap and may have
// none, and so it does of one that may have none. What its pod has beyond the others is reported.
func TestWhoseSwapItIs(t *testing.T) {
	container := func(name, swap string) string {
		return `{"name":"` + name + `","memory":{"time":"2026-11-20T14:00:07Z","rssBytes":300},"swap":` + swap + `}`
	}
	const (
		untold = `{"time":"2026-11-20T14:00:07Z","swapAvailableBytes":0,"swapUsageBytes":0}`
		none   = `{"swapAvailableBytes":9961472,"swapUsageBytes":0}`
		some   = `{"swapAvailableBytes":9961472,"swapUsageBytes":5000000}`
		full   = `{"swapAvailableBytes":0,"swapUsageBytes":5000000}`
	)
	used := func(b int) string { return fmt.Sprintf(`{"swapUsageBytes":%d}`, b) }
	for name, tc := range map[string]struct {
		containers []string
		pod        string
		want       []memory.Bytes
	}{
		"as it was seen":                    {[]string{untold}, used(13365248), []memory.Bytes{13365248}},
		"a sidecar that is told":            {[]string{some, untold}, used(13000000), []memory.Bytes{5000000, 8000000}},
		"two of which nothing is told":      {[]string{untold, untold}, used(13000000), []memory.Bytes{0, 0}},
		"pause, beside one that may not":    {[]string{untold}, used(143360), []memory.Bytes{0}},
		"pause, beside one that is told":    {[]string{full, untold}, used(5143360), []memory.Bytes{5000000, 0}},
		"the pod was measured before":       {[]string{some, untold}, used(1000000), []memory.Bytes{5000000, 0}},
		"one that could and does not":       {[]string{none}, used(13000000), []memory.Bytes{0}},
		"one without a limit":               {[]string{used(0)}, used(13000000), []memory.Bytes{0}},
		"nothing is told of the pod either": {[]string{untold}, `null`, []memory.Bytes{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var containers []string
			for i, swap := range tc.containers {
				containers = append(containers, container(string(rune('a'+i)), swap))
			}
			list := `"containers":[` + strings.Join(containers, ",") + `]`
			// The one that is left out, in its first second, has no index.
			left := strings.Replace(list, `[`, `[{"name":"first","swap":`+untold+`},`, 1)
			for _, in := range []string{
				`{"pods":[{"podRef":{"name":"web-0","namespace":"shop"},` + list + `,"swap":` + tc.pod + `}]}`,
				`{"pods":[{"swap":` + tc.pod + `,` + left + `,"podRef":{"name":"web-0","namespace":"shop"}}]}`,
				`{"pods":[{"swap":{"swapUsageBytes":9999999999},"containers":[` + container("x", untold) + `]},` +
					`{"podRef":{"name":"web-0","namespace":"shop"},` + list + `,"swap":` + tc.pod + `}]}`,
			} {
				samples, err := decoded(strings.NewReader(in))
				if err != nil {
					t.Fatal(err)
				}
				var got []memory.Bytes
				for _, s := range samples {
					got = append(got, s.Swap)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: swap (-want +got):\n%s", in, diff)
				}
			}
		})
	}
}

func with(s memory.Sample, change func(*memory.Sample)) memory.Sample {
	change(&s)
	return s
}

func TestDecodeSummaryRefuses(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"nothing":                          {``, "unexpected EOF"},
		"half a summary":                   {doc(`{}`)[:80], "unexpected EOF"},
		"a page":                           {`<html>`, "the response has no list of pods"},
		"an error in JSON":                 {`{"kind":"Status","code":500}`, "the response has no list of pods"},
		"a list":                           {`[]`, "the response has no list of pods"},
		"RSS is less than nothing":         {doc(`{"memory":{"rssBytes":-1}}`), "invalid syntax"},
		"RSS is words":                     {doc(`{"memory":{"rssBytes":"300Mi"}}`), "/memory/rssBytes"},
		"pressure of another kind":         {doc(`{"memory":{"psi":{"full":7}}}`), "/memory/psi/full"},
		"a comma too many":                 {doc(`{},`), `invalid character ',' at start of value`},
		"a missing comma":                  {doc(`{}{}`), "expecting ',' or ']'"},
		"no value":                         {doc(`{"name":}`), `invalid character '}' at start of value`},
		"no colon":                         {doc(`{"name" "app"}`), `after object name (expecting ':')`},
		"a key without quotes":             {doc(`{name:"app"}`), `within "/pods/0/containers/0"`},
		"a number that runs into a string": {doc(`{"memory":{"rssBytes":3"x"}}`), `after object value (expecting ','`},
		"an escape that is none":           {doc(`{"name":"\x"}`), "invalid escape sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decoded(strings.NewReader(test.in))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestDecodeSummaryPassesOnWhyTheReadFailed(t *testing.T) {
	cut := io.MultiReader(strings.NewReader(`{"pods":[`), iotest.ErrReader(iotest.ErrTimeout))
	if _, err := decoded(cut); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error is %v, want %v", err, iotest.ErrTimeout)
	}
}

// testdata/summary.json is what the kubelet of Kubernetes 1.36 in the lab reported about a Deployment with a native
// sidecar and a pod whose children were killed.
func TestDecodeSummaryReadsWhatAKubeletSaid(t *testing.T) {
	in, err := os.ReadFile("testdata/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := decoded(bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	want, ok := oracle(t, in)
	if diff := cmp.Diff(want, got); !ok || len(got) != 5 || diff != "" {
		t.Errorf("%d samples, want 5; differences to the ordinary decoder (-want +got):\n%s", len(got), diff)
	}
	killed := memory.Sample{
		Container: memory.ContainerRef{
			Namespace: "usage-check", Pod: "childkill", UID: "31894953-b0ec-431b-adf8-828911e28042", Container: "app",
		},
		Time: time.Date(2026, 11, 20, 15, 11, 42, 0, time.UTC), Started: time.Date(2026, 11, 20, 14, 49, 2, 0, time.UTC),
		RSS: 8335360, HasRSS: true, WorkingSet: 8544256, Usage: 8544256, MajorFaults: 1, HasMajorFaults: true,
	}
	if diff := cmp.Diff(killed, got[0]); diff != "" {
		t.Errorf("first sample (-want +got):\n%s", diff)
	}
}

func TestDecodeSummaryReadsLargeOnes(t *testing.T) {
	for _, everything := range []bool{false, true} {
		in := typicalSummary(3, 100, everything)
		got, err := decoded(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		want, ok := oracle(t, in)
		if diff := cmp.Diff(want, got); !ok || len(got) != 200 || diff != "" {
			t.Errorf("%d samples, want 200; differences to the ordinary decoder (-want +got):\n%s", len(got), diff)
		}
	}
}

// FuzzDecodeSummary: whatever an ordinary decoder accepts as a summary, ours reads the same from; nothing makes it
// panic or hang.
func FuzzDecodeSummary(f *testing.F) {
	f.Add([]byte(doc(`{"name":"app","startTime":null,` +
		`"memory":{"time":"2026-11-20T14:00:07Z","rssBytes":1,"workingSetBytes":2}},{}`)))
	f.Add([]byte(`{"pods":[{"podRef":{"name":"\ud83d\ude00","namespace":"b"},"containers":[{"name":"é",` +
		`"memory":{"time":"2026-11-20T14:00:07+01:00","rssBytes":00}}]}]}`))
	f.Add([]byte(`{"pods":[{"containers":[{"x":{"y":[[[["\\\""]]]]}}]}],"pods":null}`))
	within := budget.Budget{Bytes: 256 << 10, PerByte: 128, CPU: time.Second}
	_, _ = decoded(strings.NewReader(doc(`{"name":"app"}`))) // what is made once per process is no part of the budget
	f.Fuzz(func(t *testing.T, in []byte) {
		var got []memory.Sample
		var err error
		budget.Check(t, within, len(in), func() { got, err = decoded(bytes.NewReader(in)) })
		slow, slowErr := decoded(iotest.OneByteReader(bytes.NewReader(in)))
		if (err == nil) != (slowErr == nil) || cmp.Diff(got, slow) != "" {
			t.Errorf("%q read at once gives %v, %v, byte by byte %v, %v", in, got, err, slow, slowErr)
		}
		for _, s := range got {
			if s.RSS < 0 || s.WorkingSet < 0 || !s.HasRSS && s.RSS != 0 || s.Usage < 0 || s.MajorFaults < 0 ||
				!s.HasMajorFaults && s.MajorFaults != 0 {
				t.Errorf("impossible sample %+v", s)
			}
		}
		want, ok := oracle(t, in)
		if !ok {
			return
		}
		if err != nil {
			t.Fatalf("%q is refused: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	})
}

// oracle reads a summary with the Kubernetes types and decoder; not ok: it is not a summary, or one on which decoders
// may differ.
func oracle(t *testing.T, in []byte) ([]memory.Sample, bool) {
	t.Helper()
	var s struct {
		Pods *[]stats.PodStats `json:"pods"`
	}
	strict, err := kjson.UnmarshalStrict(in, &s, kjson.DisallowDuplicateFields)
	if err != nil || len(strict) > 0 || s.Pods == nil {
		return nil, false
	}
	var all []memory.Sample
	for _, p := range *s.Pods {
		first := len(all)
		for _, c := range p.Containers {
			if len(p.PodRef.Name)+len(p.PodRef.Namespace)+len(p.PodRef.UID)+len(c.Name) > 512 {
				return nil, false
			}
			if p.PodRef.Name == "" || p.PodRef.Namespace == "" || c.Name == "" || c.Memory == nil {
				continue
			}
			all = append(all, sampleOf(p.PodRef, c)...)
		}
		tellSwapOf(p, all[first:])
	}
	return all, true
}

func known(n *uint64) (memory.Bytes, bool) {
	if n == nil || *n > uint64(memory.Max) {
		return 0, false
	}
	return memory.Bytes(*n), true
}

// tellSwapOf does the same as [summary.tellSwap] from the other end: by container, for those that have a sample.
func tellSwapOf(p stats.PodStats, samples []memory.Sample) {
	if p.Swap == nil {
		return
	}
	rest, _ := known(p.Swap.SwapUsageBytes)
	var untold []int
	for i, n := 0, 0; i < len(p.Containers); i++ {
		c := p.Containers[i]
		if c.Name == "" || c.Memory == nil || len(sampleOf(p.PodRef, c)) == 0 {
			continue
		}
		rest = rest.Minus(samples[n].Swap)
		if s := c.Swap; s != nil && s.SwapUsageBytes != nil && s.SwapAvailableBytes != nil &&
			*s.SwapUsageBytes == 0 && *s.SwapAvailableBytes == 0 {
			untold = append(untold, n)
		}
		n++
	}
	if len(untold) == 1 && rest >= memory.MiB {
		samples[untold[0]].Swap = rest
	}
}

func sampleOf(pod stats.PodReference, c stats.ContainerStats) []memory.Sample {
	rss, hasRSS := known(c.Memory.RSSBytes)
	ws, _ := known(c.Memory.WorkingSetBytes)
	if c.Memory.Time.IsZero() || rss == 0 && ws == 0 {
		return nil
	}
	usage, _ := known(c.Memory.UsageBytes)
	faults, hasFaults := known(c.Memory.MajorPageFaults)
	s := memory.Sample{
		Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: types.UID(pod.UID), Container: c.Name},
		Time:      c.Memory.Time.Time, Started: c.StartTime.Time, RSS: rss, HasRSS: hasRSS, WorkingSet: ws,
		Usage: usage, MajorFaults: int64(faults), HasMajorFaults: hasFaults,
	}
	if psi := c.Memory.PSI; psi != nil {
		if p := psi.Full.Avg300; p >= 0 && p <= 100 {
			s.WaitedPercent = p
		}
	}
	if c.Swap != nil {
		s.Swap, _ = known(c.Swap.SwapUsageBytes)
	}
	return []memory.Sample{s}
}
