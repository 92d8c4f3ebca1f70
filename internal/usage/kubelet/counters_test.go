// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const (
	uid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	app = `container="app",id="/kubepods/burstable/pod` + uid + `/c1",image="web",name="c1",namespace="shop",pod="web-0"`
)

var web = memory.ContainerRef{Namespace: "shop", Pod: "web-0", UID: uid, Container: "app"}

func TestDecodeCounters(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		want Counters
	}{
		"all of it": {
			`# HELP container_oom_events_total Count of out of memory events observed for the container
# TYPE container_oom_events_total counter
container_oom_events_total{` + app + `} 3 1763647207000
# TYPE container_memory_failcnt counter
container_memory_failcnt{` + app + `} 0
# TYPE container_memory_failures_total counter
container_memory_failures_total{` + app + `,failure_type="pgfault",scope="container"} 99999
container_start_time_seconds{` + app + `} 1.763640007e+09
`,
			Counters{
				web: {
					Instance: "c1", Started: time.Unix(1763640007, 0).UTC(), OOMEvents: 3,
				},
			},
		},
		"what is not said is unknown, not 0": {
			"container_oom_events_total{" + app + "} 0\n",
			Counters{web: {Instance: "c1", OOMEvents: 0}},
		},
		"numbers that are no counts": {
			"container_oom_events_total{" + app + "} NaN\ncontainer_memory_rss{" + app +
				"} -4\ncontainer_start_time_seconds{" + app + "} +Inf\n",
			Counters{web: {Instance: "c1", OOMEvents: Unknown}},
		},
		"right after a restart the newer life counts, wherever it stands": {
			strings.ReplaceAll(
				"container_oom_events_total{"+app+"} 1\ncontainer_start_time_seconds{"+app+"} 1000\n", "c1", "c2",
			) +
				"container_oom_events_total{" + app + "} 9\ncontainer_start_time_seconds{" + app + "} 900\n",
			Counters{
				web: {
					Instance: "c2", Started: time.Unix(1000, 0).UTC(), OOMEvents: 1,
				},
			},
		},
		"the pod, its sandbox, a service and the node are no containers": {
			`container_oom_events_total{container="",id="/kubepods/burstable/pod` + uid + `",namespace="shop",pod="web-0"} 1
container_oom_events_total{container="POD",id="/kubepods/burstable/pod` + uid + `/s1",namespace="shop",pod="web-0"} 1
container_oom_events_total{container="",id="/system.slice/sshd.service",namespace="",pod=""} 1
container_oom_events_total{container="",id="/",namespace="",pod=""} 1
`,
			Counters{},
		},
		"labels with everything in them": {
			"container_oom_events_total{" + strings.ReplaceAll(app, `image="web"`, `image="a\"}{\\\n b"`) + "} 2\n",
			Counters{web: {Instance: "c1", OOMEvents: 2}},
		},
		"shared and kernel memory is usage without file pages and RSS, measured together": {
			"container_memory_usage_bytes{" + app + "} 1.2e+08 1763647207000\n" +
				"container_memory_total_active_file_bytes{" + app + "} 2e+07 1763647207000\n" +
				"container_memory_total_inactive_file_bytes{" + app + "} 1e+06 1763647207000\n" +
				"container_memory_rss{" + app + "} 2.2e+07 1763647207000\n" +
				"container_memory_swap{" + app + "} 5e+06 1763647207000\n",
			Counters{
				web: {
					Instance: "c1", OOMEvents: Unknown,
					SharedAndKernel: 77_000_000, Measured: time.UnixMilli(1763647207000).UTC(),
				},
			},
		},
		"parts of two measurements give no demand": {
			"container_memory_usage_bytes{" + app + "} 1.2e+08 1763647207000\n" +
				"container_memory_total_active_file_bytes{" + app + "} 2e+07 1763647207000\n" +
				"container_memory_total_inactive_file_bytes{" + app + "} 1e+06 1763647207000\n" +
				"container_memory_rss{" + app + "} 2.2e+07 1763647197000\n",
			Counters{web: {Instance: "c1", OOMEvents: Unknown}},
		},
		"a longer name that starts the same": {
			"container_oom_events_total_of_another_kind{" + app + "} 2\ncontainer_oom_events_total{" + app + "} 5\n",
			Counters{web: {Instance: "c1", OOMEvents: 5}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeCounters(strings.NewReader(test.in), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecodeCountersNamesWhatHasNoName: as reported by a kubelet of 1.36.3 after containerd had not answered for 5 s.
// Its sandbox belongs to no container, and names that are present are not looked up.
func TestDecodeCountersNamesWhatHasNoName(t *testing.T) {
	nameless := func(of, container string) string {
		return `{container="",id="` + of + "/" + container + `",image="",name="",namespace="",pod=""}`
	}
	const pod = "/kubepods/burstable/pod" + uid
	in := "container_oom_events_total" + nameless(pod, "c7") + " 2\ncontainer_start_time_seconds" + nameless(pod, "c7") +
		" 1000\ncontainer_oom_events_total" + nameless(pod, "s1") + " 9\ncontainer_oom_events_total" +
		nameless("/system.slice", "containerd.service") + " 9\ncontainer_oom_events_total{" +
		strings.Replace(app, `container="app"`, `container="other"`, 1) + "} 1\n"
	other := web
	other.Container = "other"
	named := Counters{
		web: {
			Instance: "c7", Started: time.Unix(1000, 0).UTC(), OOMEvents: 2,
		},
		other: {Instance: "c1", OOMEvents: 1},
	}
	name := func(pod types.UID, id string) (memory.ContainerRef, bool) {
		if pod != uid || id == "c1" {
			t.Errorf("asked for %s of %s", id, pod)
		}
		return web, id == "c7"
	}
	for _, tc := range []struct {
		name Namer
		want Counters
	}{{name, named}, {nil, Counters{other: named[other]}}} {
		got, err := DecodeCounters(strings.NewReader(in), tc.name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("counters (-want +got):\n%s", diff)
		}
	}
}

// testdata/cadvisor.txt is what the kubelet of Kubernetes 1.36 in the lab reported about a pod, three of whose
// children had been killed.
func TestDecodeCountersReadsWhatAKubeletSaid(t *testing.T) {
	f, err := os.Open("testdata/cadvisor.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := DecodeCounters(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Counters{
		{Namespace: "usage-check", Pod: "childkill", UID: "31894953-b0ec-431b-adf8-828911e28042", Container: "app"}: {
			Instance:        "4e895e93d18fc530fc2f30d966588f116cbfea765766dfdb4bb8346bddfa9b9a",
			Started:         time.Date(2026, 11, 20, 14, 49, 2, 0, time.UTC),
			OOMEvents:       3,
			SharedAndKernel: 208_896, Measured: time.UnixMilli(1795187502476).UTC(), // the container_memory_kernel_usage of it
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestDecodeCountersRefuses(t *testing.T) {
	whole := "container_oom_events_total{" + app + "} 3\n"
	for name, test := range map[string]struct {
		in   io.Reader
		want error
		says string
	}{
		"nothing":        {in: strings.NewReader(""), want: errNoCounters},
		"something else": {in: strings.NewReader("<html>\n"), want: errNoCounters},
		"a torn line":    {in: strings.NewReader(whole + "container_memory_rss{"), want: io.ErrUnexpectedEOF},
		"a connection that breaks": {
			in: io.MultiReader(strings.NewReader(whole), iotest.ErrReader(iotest.ErrTimeout)), want: iotest.ErrTimeout,
		},
		"a line without end":     {in: strings.NewReader(whole + strings.Repeat("a", longestLine+1)), want: errLongLine},
		"a value that is none":   {in: strings.NewReader("container_oom_events_total{" + app + "} three\n"), says: "three"},
		"labels that do not end": {in: strings.NewReader("container_oom_events_total{" + app + " 3\n"), says: "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeCounters(test.in, nil)
			if err == nil || got != nil {
				t.Fatalf("counters %v, error %v, want an error and nothing else", got, err)
			}
			if test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %q, want %v, %q", err, test.want, test.says)
			}
		})
	}
}

// FuzzDecodeCounters: nothing makes it panic, and no container appears that no line names.
func FuzzDecodeCounters(f *testing.F) {
	f.Add(
		[]byte("container_oom_events_total{" + app + "} 3 1763647207000\ncontainer_start_time_seconds{" + app + "} 1.7e9\n"),
	)
	f.Add(
		[]byte("# TYPE container_memory_rss gauge\ncontainer_memory_rss{" + app + "} 0x1p9\n"),
	)
	f.Add([]byte("container_memory_usage_bytes{" + app + "} 1e300\n"))
	// the text parser makes four objects of each label
	within := budget.Budget{Bytes: 256 << 10, PerByte: 256, CPU: time.Second}
	// what is allocated once per process is not part of the budget
	_, _ = DecodeCounters(strings.NewReader("container_oom_events_total{"+app+"} 3\n"), nil)
	f.Fuzz(func(t *testing.T, in []byte) {
		var got Counters
		var err error
		budget.Check(t, within, len(in), func() { got, err = DecodeCounters(bytes.NewReader(in), nil) })
		if (err == nil) == (got == nil) {
			t.Errorf("counters %v and error %v", got, err)
		}
		for ref, c := range got {
			if ref.Namespace == "" || ref.Pod == "" || ref.Container == "" {
				t.Errorf("a container without a name: %+v", ref)
			}
			if c.OOMEvents < Unknown || c.Started.Year() > math.MaxUint16 {
				t.Errorf("impossible counter %+v", c)
			}
		}
	})
}
