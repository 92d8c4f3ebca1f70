// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package evalshapes

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/shape"
)

// accepted are the correct shapes of a label. A healthy process may be flat or a sawtooth; load in waves may be bursts
// or a sawtooth.
var accepted = map[string][]shape.Kind{
	"healthy":   {shape.Flat, shape.Sawtooth},
	"bursty":    {shape.Burst, shape.Sawtooth},
	"retaining": {shape.StepRetention},
	"leaking":   {shape.Climb},
	"following": {shape.FollowsLimit},
}

var (
	labelNames = []string{"healthy", "bursty", "retaining", "leaking", "following"}
	kindNames  = []shape.Kind{
		shape.Flat, shape.Sawtooth, shape.Burst, shape.StepRetention, shape.Climb, shape.FollowsLimit,
		shape.Unknown,
	}
)

var dir = flag.String("recordings", "../recordings", "directory with recordings.csv, labels.csv and NAME.csv.gz")

// TestTheBarHolds classifies all recordings with both inputs, and prints confusion matrices.
func TestTheBarHolds(t *testing.T) {
	if err := run(*dir, testing.Verbose()); err != nil {
		t.Fatal(err)
	}
}

// way is a way in which samples become the classifier's input.
type way struct {
	name  string
	input func(r recording, share float64) shape.Input
}

// ways are all samples, and the part that memfit stores. Both must reach the bar; the result of the second, which users
// get, is printed last.
var ways = []way{
	{"every sample", input},
	{"through memfit's history (1.5 KiB)", fromHistory},
}

// score counts the correct classifications of one way.
type score struct {
	right, all, falseClimbs int
	heldOutRight, heldOut   int
	matrix                  map[string]map[shape.Kind]int
}

func (s *score) add(r recording, want label, got shape.Shape) bool {
	ok := slices.Contains(accepted[want.name], got.Kind)
	if want.sick != "" {
		ok = ok && slices.Equal(got.Outliers, []string{podName(r, want.sick)})
	}
	if s.matrix == nil {
		s.matrix = map[string]map[shape.Kind]int{}
	}
	if s.matrix[want.name] == nil {
		s.matrix[want.name] = map[shape.Kind]int{}
	}
	s.matrix[want.name][got.Kind]++
	s.all++
	if r.heldOut() {
		s.heldOut++
	}
	if ok {
		s.right++
		if r.heldOut() {
			s.heldOutRight++
		}
	}
	if want.name == "healthy" && got.Kind == shape.Climb {
		s.falseClimbs++
	}
	return ok
}

func (s *score) accuracy() float64 { return float64(s.right) / float64(s.all) }

// verdict returns the summary line of a way.
func (s *score) verdict() string {
	return fmt.Sprintf("accuracy=%.3f false_climb_on_healthy=%d", s.accuracy(), s.falseClimbs)
}

func (s *score) belowTheBar() bool { return !(s.accuracy() >= minAccuracy) || s.falseClimbs > 0 }

func run(dir string, verbose bool) error {
	recs, err := recordings(dir)
	if err != nil {
		return err
	}
	known, err := labels(dir)
	if err != nil {
		return err
	}
	var scores []score
	for _, w := range ways {
		s, err := evaluate(w, recs, known, verbose)
		if err != nil {
			return fmt.Errorf("%w in %s", err, filepath.Join(dir, "labels.csv"))
		}
		scores = append(scores, s)
	}
	printTimeToLimit(recs, known)
	var failed []error
	for i, w := range ways {
		fmt.Printf("--- %s\n%s\n", w.name, scores[i].verdict())
		if scores[i].belowTheBar() {
			failed = append(
				failed, fmt.Errorf("%s: below the bar: accuracy of at least %.2f, and no false climb", w.name, minAccuracy),
			)
		}
	}
	return errors.Join(failed...)
}

// evaluate classifies all recordings in one way, at their end and at earlier times.
func evaluate(w way, recs []recording, known map[string]label, verbose bool) (score, error) {
	var s, early score
	fmt.Printf("--- %s\n", w.name)
	for _, r := range recs {
		want, found := known[r.name]
		if !found || accepted[want.name] == nil {
			return s, fmt.Errorf("%s: no label", r.name)
		}
		got := shape.Classify(w.input(r, 1))
		if ok := s.add(r, want, got); !ok || verbose {
			fmt.Printf("%-6s %-16s %-10s %-13s %-7s %s\n", map[bool]string{true: "right", false: "WRONG"}[ok],
				r.name, want.name, got.Kind, got.Confidence, got.Summary)
		}
		for _, share := range []float64{0.25, 0.4, 0.6, 0.8} {
			if got := shape.Classify(w.input(r, share)); !early.add(r, want, got) && verbose {
				fmt.Printf(
					"  at %.0f %%: %-16s %-10s %-13s %-7s %s\n", share*100, r.name, want.name, got.Kind, got.Confidence,
					got.Summary,
				)
			}
		}
	}
	printMatrix(s.matrix)
	fmt.Printf("%d of %d right", s.right, s.all)
	if s.heldOut > 0 {
		fmt.Printf(", of those recorded last %d of %d", s.heldOutRight, s.heldOut)
	}
	fmt.Printf("; early (at 25, 40, 60 and 80 %%): %d false climbs in %d classifications\n", early.falseClimbs, early.all)
	return s, nil
}

// printTimeToLimit predicts at 60 % of every leak without a restart when it reaches its final size, and counts how
// often the interval was correct.
func printTimeToLimit(recs []recording, known map[string]label) {
	predicted, correct := 0, 0
	for _, r := range recs {
		last := r.samples[len(r.samples)-1]
		if known[r.name].name != "leaking" || last.instance > 0 {
			continue
		}
		in := input(r, 0.6)
		in.Limit = last.memory
		got := shape.Classify(in).TimeToLimit
		if got[1] == 0 {
			continue
		}
		predicted++
		if took := r.when(last).Sub(r.now(0.6)); got[0] <= took && took <= got[1] {
			correct++
		}
	}
	fmt.Printf("time to limit: predicted at 60 %% of %d leaks, the interval was correct %d times\n", predicted, correct)
}

// minAccuracy is the bar; in addition, no healthy process may be classified as a leak.
const minAccuracy = 0.95

func printMatrix(matrix map[string]map[shape.Kind]int) {
	fmt.Printf("%-10s", "")
	for _, k := range kindNames {
		fmt.Printf(" %13s", k)
	}
	fmt.Println()
	for _, name := range labelNames {
		fmt.Printf("%-10s", name)
		for _, k := range kindNames {
			fmt.Printf(" %13d", matrix[name][k])
		}
		fmt.Println()
	}
}

// startTime is the assumed start of recordings.
var startTime = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func podName(r recording, replica string) string { return r.name + "-" + replica }

// until returns the samples of the first share of a recording.
func (r recording) until(share float64) []sample {
	end := int(share * float64(r.samples[len(r.samples)-1].second))
	n := slices.IndexFunc(r.samples, func(s sample) bool { return s.second > end })
	if n < 0 {
		return r.samples
	}
	return r.samples[:n]
}

// input returns all samples of the first share of a recording.
func input(r recording, share float64) shape.Input {
	var in shape.Input
	at := map[[2]int]int{}
	for _, s := range r.until(share) {
		key := [2]int{s.replica, s.instance}
		i, found := at[key]
		when := r.when(s)
		if !found {
			i = len(in.Instances)
			at[key] = i
			in.Instances = append(in.Instances, shape.Instance{Container: r.container(s), Started: when})
		}
		in.Instances[i].Points = append(
			in.Instances[i].Points, shape.Point{Time: when, RSS: s.memory},
		)
	}
	return r.facts(in, share)
}

// fromHistory returns the first share of a recording as stored in memfit's bounded history.
func fromHistory(r recording, share float64) shape.Input {
	h := history.New()
	started := map[[2]int]time.Time{}
	for _, s := range r.until(share) {
		key := [2]int{s.replica, s.instance}
		if started[key].IsZero() {
			started[key] = r.when(s)
			if s.instance > 0 {
				h.Restarted(r.container(s), r.when(s))
			}
		}
		h.Add(
			memory.Sample{
				Container: r.container(s), Time: r.when(s), Started: started[key], RSS: s.memory, HasRSS: true, Exact: true,
				WorkingSet: s.memory,
			},
			s.limit,
		)
	}
	in := r.facts(shape.FromHistory(h), share)
	now := map[string]memory.Bytes{}
	for _, s := range r.until(share) {
		now[r.container(s).Pod] = s.memory
	}
	for pod, rss := range now {
		in.Replicas = append(in.Replicas, shape.Replica{Pod: pod, RSS: rss})
	}
	return in
}

// facts adds limit, cap and overhead at the end of the share.
func (r recording) facts(in shape.Input, share float64) shape.Input {
	samples := r.until(share)
	last := samples[len(samples)-1]
	in.Limit, in.Cap, in.Overhead = last.limit, last.cap, r.overhead
	return in
}

// now returns the end of the first share of the recording.
func (r recording) now(share float64) time.Time {
	seen := r.until(share)
	return r.when(seen[len(seen)-1])
}

func (r recording) when(s sample) time.Time {
	return startTime.Add(time.Duration(s.second) * r.second)
}

func (r recording) container(s sample) memory.ContainerRef {
	pod := podName(r, strconv.Itoa(s.replica))
	return memory.ContainerRef{Namespace: "lab", Pod: pod, UID: types.UID(pod), Container: "app"}
}
