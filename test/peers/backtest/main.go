// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	traces := flag.String(
		"traces", "", "directories with NAME.csv.gz or NAME.csv (series,unix_seconds,bytes), separated by commas",
	)
	seeds := flag.String("seeds", "1", "seeds of the generated sets, separated by commas; empty for none")
	out := flag.String("out", "", "directory for plots and the generated sets; empty for none")
	check := flag.String("check", "", "fail when a claim in this file no longer holds; see held.txt")
	sensitivity := flag.Bool(
		"sensitivity", false, "only print how total cost changes with a quarter less and more of every constant",
	)
	priors := flag.Bool("priors", false, "only print the effect of data on other workloads of the same image")
	flag.Parse()

	sets, err := load(*traces, *seeds, *out)
	if err != nil {
		return err
	}
	if len(sets) == 0 {
		return errors.New("no traces: give -traces DIR or -seeds 1")
	}
	if *sensitivity {
		Sensitivity(os.Stdout, sets)
		return nil
	}
	if *priors {
		for _, set := range sets {
			Priors(os.Stdout, set)
		}
		return nil
	}
	var before held
	if *check != "" {
		if before, err = readHeld(*check); err != nil {
			return err
		}
	}
	previous, err := readPreviousRules(beforeText)
	if err != nil {
		return err
	}
	var lost []string
	var answers []answer
	for _, set := range sets {
		var tuning Set
		tuning, set = Halves(set)
		if len(set.Series) == 0 {
			continue
		}
		outcomes := RunAll(set, os.Stdout)
		verdict := Judge(set.Name, outcomes)
		a := answer{verdict: verdict, metrics: map[string]Metrics{}, changes: previous[set.Name].Changes(verdict)}
		p95 := UseP95(set)
		for _, o := range outcomes {
			a.metrics[o.Policy] = o.Metrics(p95)
		}
		verdict.Print(os.Stdout)
		verdict.PrintCurves(os.Stdout, "reporting")
		if len(tuning.Series) > 0 {
			others := RunAll(tuning, io.Discard)
			Judge(set.Name, others).PrintCurves(os.Stdout, "tuning")
			for _, p := range Pair(others, outcomes) {
				p.Print(os.Stdout, set.Name)
				a.paired = append(a.paired, p)
			}
		}
		printChanges(os.Stdout, verdict, a.changes)
		answers = append(answers, a)
		lost = append(lost, before.lost(verdict)...)
		if *out == "" {
			continue
		}
		if err := drawSet(*out, set, outcomes); err != nil {
			return fmt.Errorf("drawing %s: %w", set.Name, err)
		}
	}
	if *out != "" {
		if err := drawQuestions(*out, answers); err != nil {
			return err
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("claims of %s no longer hold: %s", *check, strings.Join(lost, "; "))
	}
	return nil
}

// load reads all traces and makes the generated sets, which it also writes to out/sets, for other programs to replay.
func load(traces, seeds, out string) ([]Set, error) {
	var sets []Set
	for dir := range strings.SplitSeq(traces, ",") {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a directory of traces", dir)
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
