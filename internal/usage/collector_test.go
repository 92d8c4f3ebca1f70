// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memfit/memfit/internal/memory"
)

// fake is a Source that takes its time and refuses where configured to.
type fake struct {
	name string
	took time.Duration

	mu      sync.Mutex
	refuse  map[string]error
	asked   []string
	at      []time.Duration // since begin
	begin   time.Time
	running int
	most    int
}

func (f *fake) Name() string { return f.name }

func (f *fake) Read(ctx context.Context, n Node) (Reading, error) {
	f.mu.Lock()
	f.asked = append(f.asked, n.Name)
	f.at = append(f.at, time.Since(f.begin))
	f.running++
	f.most = max(f.most, f.running)
	err := f.refuse[n.Name]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
	}()
	if f.took > 0 {
		select {
		case <-time.After(f.took):
		case <-ctx.Done():
			return Reading{}, ctx.Err()
		}
	}
	if err != nil {
		return Reading{}, err
	}
	return Reading{
		Source: f.name, Samples: []memory.Sample{{Time: time.Now(), Container: memory.ContainerRef{Pod: "on-" + n.Name}}},
	}, nil
}

// collect is one cycle, with all that was read.
func collect(ctx context.Context, c *Collector, nodes []Node) (all []Reading, gaps []memory.Silence) {
	gaps = c.Each(ctx, nodes, func(_ Node, r Reading) { all = append(all, r) })
	return all, gaps
}

func nodes(n int) []Node {
	all := make([]Node, n)
	for i := range all {
		all[i] = Node{Name: fmt.Sprintf("n%d", i)}
	}
	return all
}

var errDown = errors.New("connection refused")

func TestCollectReadsEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{name: "kubelet", took: time.Second, begin: time.Now()}
		c := &Collector{Sources: []Source{source}, Now: time.Now, Concurrency: 4}
		readings, gaps := collect(t.Context(), c, nodes(10))
		if len(gaps) != 0 {
			t.Errorf("gaps: %v", gaps)
		}
		var pods []string
		for _, r := range readings {
			pods = append(pods, r.Samples[0].Container.Pod)
		}
		slices.Sort(pods)
		want := []string{"on-n0", "on-n1", "on-n2", "on-n3", "on-n4", "on-n5", "on-n6", "on-n7", "on-n8", "on-n9"}
		if diff := cmp.Diff(want, pods); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
		if source.most != 4 {
			t.Errorf("%d nodes at once, want 4", source.most)
		}
		if got, want := time.Since(source.begin), 3*time.Second; got != want {
			t.Errorf("10 nodes of 1s each, 4 at once, took %s, want %s", got, want)
		}
		if slices.IsSorted(source.asked) {
			t.Errorf("asked in the order given, %v: want a different order each cycle", source.asked)
		}
	})
}

func TestCollectSpreadsTheStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{name: "kubelet", begin: time.Now()}
		c := &Collector{Sources: []Source{source}, Now: time.Now, Spread: 30 * time.Second}
		collect(t.Context(), c, nodes(30))
		for i, at := range source.at { // each has a second of its own
			if low, high := time.Duration(i)*time.Second, time.Duration(i+1)*time.Second; at < low || at > high {
				t.Errorf("read %d started after %s, want between %s and %s", i, at, low, high)
			}
		}
	})
}

func TestCollectLeavesSilentNodesAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		source := &fake{name: "kubelet", refuse: map[string]error{"n1": errDown}, begin: start}
		c := &Collector{Sources: []Source{source}, Now: time.Now, MaxBackoff: 40 * time.Second}
		cycle := func(wantAsked []string, wantGaps []memory.Silence) {
			t.Helper()
			source.asked = nil
			_, gaps := collect(t.Context(), c, nodes(2))
			slices.Sort(source.asked)
			if diff := cmp.Diff(wantAsked, source.asked); diff != "" {
				t.Errorf("after %s, asked (-want +got):\n%s", time.Since(start), diff)
			}
			if diff := cmp.Diff(wantGaps, gaps, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("after %s, gaps (-want +got):\n%s", time.Since(start), diff)
			}
		}
		both, healthy := []string{"n0", "n1"}, []string{"n0"}
		gap := []memory.Silence{{Node: "n1", Error: errDown.Error(), Since: start}}

		cycle(both, gap)
		time.Sleep(11 * time.Second) // jitter takes 3s of the 15s at most
		cycle(healthy, gap)          // in backoff: not asked, but still a gap
		time.Sleep(4 * time.Second)
		cycle(both, gap)
		time.Sleep(23 * time.Second)
		cycle(healthy, gap)
		time.Sleep(7 * time.Second)
		cycle(both, gap)
		time.Sleep(31 * time.Second)
		cycle(healthy, gap)
		time.Sleep(9 * time.Second) // 40s: it would be 60s, but for MaxBackoff
		source.refuse = nil
		cycle(both, nil) // it is back
		answered := time.Now()
		time.Sleep(time.Second)
		source.refuse = map[string]error{"n1": errDown}
		cycle(both, []memory.Silence{{Node: "n1", Error: errDown.Error(), Since: time.Now(), LastResponse: answered}})
	})
}

func TestCollectJittersTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{name: "kubelet", refuse: map[string]error{}}
		for _, n := range nodes(50) {
			source.refuse[n.Name] = errDown
		}
		c := &Collector{Sources: []Source{source}, Now: time.Now}
		collect(t.Context(), c, nodes(50))
		next := map[time.Duration]bool{}
		for name, of := range c.states {
			d := time.Until(of.sources[0].nextTry)
			next[d] = true
			if d < 12*time.Second || d > 15*time.Second {
				t.Errorf("%s is tried again in %s, want 12s to 15s", name, d)
			}
		}
		if len(next) < 40 {
			t.Errorf("50 nodes that failed together are tried again at only %d different times", len(next))
		}
	})
}

// TestCollectDoesNotAskWhereItIsNotKnown: a node that is missing is silent from now on, and asked when it is there.
func TestCollectDoesNotAskWhereItIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{name: "kubelet"}
		c := &Collector{Sources: []Source{source}, Now: time.Now}
		missing := []Node{{Name: "n0", Missing: errDown}}
		for range 2 {
			_, gaps := collect(t.Context(), c, missing)
			want := []memory.Silence{{Node: "n0", Error: errDown.Error(), Since: time.Now()}}
			if diff := cmp.Diff(want, gaps); diff != "" || len(source.asked) > 0 {
				t.Errorf("asked %v; gaps (-want +got):\n%s", source.asked, diff)
			}
			time.Sleep(time.Second)
		}
		if readings, gaps := collect(t.Context(), c, nodes(1)); len(readings) != 1 || len(gaps) != 0 {
			t.Errorf("%d readings and gaps %v, want 1 and none", len(readings), gaps)
		}
	})
}

func TestCollectForgetsNodesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{name: "kubelet", refuse: map[string]error{"n1": errDown}}
		c := &Collector{Sources: []Source{source}, Now: time.Now}
		collect(t.Context(), c, nodes(2))
		collect(t.Context(), c, nodes(1)) // n1 is deleted
		source.refuse = nil
		if readings, gaps := collect(t.Context(), c, nodes(2)); len(readings) != 2 || len(gaps) != 0 {
			t.Errorf("a new node of the same name: %d readings and gaps %v, want 2 and none", len(readings), gaps)
		}
	})
}

func TestCollectGivesOneNodeOnlySoMuchTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := &Collector{Sources: []Source{&fake{name: "kubelet", took: time.Hour}}, Now: time.Now}
		_, gaps := collect(t.Context(), c, nodes(1))
		want := []memory.Silence{{Node: "n0", Error: context.DeadlineExceeded.Error(), Since: start}}
		if diff := cmp.Diff(want, gaps); diff != "" || time.Since(start) != nodeTimeout {
			t.Errorf("after %s, gaps (-want +got):\n%s", time.Since(start), diff)
		}
	})
}

func TestCollectThatIsCutShortBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{name: "kubelet", took: time.Second}
		c := &Collector{Sources: []Source{source}, Now: time.Now, Concurrency: 1}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		readings, gaps := collect(ctx, c, nodes(3))
		if len(readings) != 1 || len(gaps) != 2 {
			t.Fatalf("%d readings and %d gaps, want 1 and 2", len(readings), len(gaps))
		}
		for _, g := range gaps {
			if g.Error != context.DeadlineExceeded.Error() || c.states[g.Node].sources[0].failures != 0 {
				t.Errorf("gap %v after %v, want the deadline and no failure", g, c.states[g.Node].sources)
			}
		}
		if readings, gaps := collect(t.Context(), c, nodes(3)); len(readings) != 3 || len(gaps) != 0 {
			t.Errorf("the next cycle has %d readings and gaps %v: want all three nodes asked at once", len(readings), gaps)
		}
	})
}
