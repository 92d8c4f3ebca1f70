// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command evalshapes lets the classifier of internal/signals look at recordings of real processes and compares what it says with what
// the processes were made to do. It prints a confusion matrix and exits 1 below the bar. test/recordings/README.md explains the labels.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
)

// accepted are the shapes that are right for a label. A healthy process may stand still or breathe; load that comes in waves may look
// like bursts or like teeth.
var accepted = map[string][]signals.ShapeKind{
	"healthy":   {signals.Flat, signals.Sawtooth},
	"bursty":    {signals.Burst, signals.Sawtooth},
	"retaining": {signals.StepRetention},
	"leaking":   {signals.Climb},
	"following": {signals.FollowsLimit},
}

var (
	labelNames = []string{"healthy", "bursty", "retaining", "leaking", "following"}
	kindNames  = []signals.ShapeKind{signals.Flat, signals.Sawtooth, signals.Burst, signals.StepRetention, signals.Climb, signals.FollowsLimit, signals.Unknown}
)

func main() {
	dir := flag.String("recordings", "test/recordings", "directory with recordings.csv, labels.csv and NAME.csv.gz")
	verbose := flag.Bool("v", false, "print every recording")
	flag.Parse()
	if err := run(*dir, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "evalshapes:", err)
		os.Exit(1)
	}
}

func run(dir string, verbose bool) error {
	recs, err := recordings(dir)
	if err != nil {
		return err
	}
	known, err := labels(dir)
	if err != nil {
		return err
	}
	var right, falseClimbs int
	matrix := map[string]map[signals.ShapeKind]int{}
	for _, r := range recs {
		want, found := known[r.name]
		if !found || accepted[want.name] == nil {
			return fmt.Errorf("%s: no label in %s", r.name, filepath.Join(dir, "labels.csv"))
		}
		got := signals.Classify(input(r, 1))
		if matrix[want.name] == nil {
			matrix[want.name] = map[signals.ShapeKind]int{}
		}
		matrix[want.name][got.Kind]++
		ok := slices.Contains(accepted[want.name], got.Kind)
		if ok {
			right++
		}
		if want.name == "healthy" && got.Kind == signals.Climb {
			falseClimbs++
		}
		if !ok || verbose {
			fmt.Printf("%-5v %-18s %-10s %-14s %-7s %s\n", ok, r.name, want.name, got.Kind, got.Confidence, got.Summary)
		}
	}
	printMatrix(matrix)
	accuracy := float64(right) / float64(len(recs))
	fmt.Printf("accuracy=%.3f false_climb_on_healthy=%d\n", accuracy, falseClimbs)
	if accuracy < 0.95 || falseClimbs > 0 {
		return fmt.Errorf("below the bar: accuracy at least 0.95 and no false climb")
	}
	return nil
}

func printMatrix(matrix map[string]map[signals.ShapeKind]int) {
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

// midnight is when recordings are taken to begin.
var midnight = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// input is the first share of a recording as the classifier sees it.
func input(r recording, share float64) signals.ShapeInput {
	end := int(share * float64(r.samples[len(r.samples)-1].second))
	var in signals.ShapeInput
	at := map[[2]int]int{}
	for _, s := range r.samples {
		if s.second > end {
			break
		}
		key := [2]int{s.replica, s.instance}
		i, found := at[key]
		when := midnight.Add(time.Duration(s.second) * r.second)
		if !found {
			i = len(in.Instances)
			at[key] = i
			ref := memory.ContainerRef{Namespace: "lab", Pod: r.name + "-" + strconv.Itoa(s.replica), Container: "app"}
			in.Instances = append(in.Instances, signals.Instance{Container: ref, Started: when})
		}
		in.Instances[i].Points = append(in.Instances[i].Points, signals.Point{Time: when, RSS: s.memory, Limit: s.limit, Load: -1})
		in.Limit, in.Cap, in.Overhead, in.Now = s.limit, s.cap, r.overhead, when
	}
	return in
}
