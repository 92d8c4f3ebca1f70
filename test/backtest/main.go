// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "backtest:", err)
		os.Exit(1)
	}
}

func run() error {
	traces := flag.String("traces", "", "directories with NAME.csv.gz or NAME.csv (series,unix_seconds,bytes), separated by commas")
	seeds := flag.String("seeds", "1", "seeds of the generated sets, separated by commas; empty for none")
	out := flag.String("out", "", "directory for plots, tables and the generated sets; empty for none")
	check := flag.Bool("check", false, "fail unless memfit has fewer kills and less slack than every VPA variant on every set")
	vary := flag.Bool("variants", false, "replay parts and stretched copies of every set as well; they are not drawn")
	flag.Parse()

	sets, err := load(*traces, *seeds, *out)
	if err != nil {
		return err
	}
	if len(sets) == 0 {
		return errors.New("no traces: give -traces DIR or -seeds 1")
	}
	drawn := len(sets)
	if *vary {
		for _, set := range slices.Clone(sets) {
			sets = append(sets, Vary(set)...)
		}
	}
	report := Report{Dir: *out}
	for i, set := range sets {
		for _, c := range contenders {
			o := Run(set, c)
			o.Print(os.Stdout)
			report.Add(o)
		}
		if *out == "" || i >= drawn {
			continue
		}
		for _, c := range postures {
			report.AddPosture(Run(set, c))
		}
		if err := report.Draw(set); err != nil {
			return fmt.Errorf("drawing %s: %w", set.Name, err)
		}
	}
	if err := report.Write(); err != nil {
		return err
	}
	lost := report.Lost()
	fmt.Fprintf(os.Stderr, "memfit against each VPA variant on %d sets: %d comparisons lost\n", len(sets), len(lost))
	for _, l := range lost {
		fmt.Fprintln(os.Stderr, " -", l)
	}
	if *check && len(lost) > 0 {
		return fmt.Errorf("memfit does not beat VPA everywhere: %s", strings.Join(lost, "; "))
	}
	return nil
}

// load reads all traces and makes the generated sets, which are kept beside the plots so that others can replay them.
func load(traces, seeds, out string) ([]Set, error) {
	var sets []Set
	for dir := range strings.SplitSeq(traces, ",") {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is no directory with traces", dir)
		}
		recorded, ok, err := ReadRecordings(dir)
		if err != nil {
			return nil, err
		}
		if ok {
			sets = append(sets, recorded)
			continue
		}
		files, err := FindSets(dir)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			set, err := ReadSet(file)
			if err != nil {
				return nil, err
			}
			sets = append(sets, set)
		}
	}
	for seed := range strings.SplitSeq(seeds, ",") {
		if seed == "" {
			continue
		}
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("seed %q: %w", seed, err)
		}
		set := Generate(n)
		sets = append(sets, set)
		if out == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(out, "sets"), 0o755); err != nil {
			return nil, err
		}
		if err := WriteSet(filepath.Join(out, "sets", set.Name+".csv.gz"), set); err != nil {
			return nil, err
		}
	}
	return sets, nil
}
