// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "backtest:", err)
		os.Exit(1)
	}
}

func run() error {
	traces := flag.String("traces", "", "directory with NAME.csv.gz or NAME.csv (series,unix_seconds,bytes)")
	seed := flag.Uint64("seed", 1, "seed of the generated set")
	flag.Parse()
	var sets []Set
	if *traces != "" {
		files, err := FindSets(*traces)
		if err != nil {
			return err
		}
		for _, file := range files {
			set, err := ReadSet(file)
			if err != nil {
				return err
			}
			sets = append(sets, set)
		}
	}
	sets = append(sets, Generate(*seed))
	for _, set := range sets {
		for _, c := range contenders {
			o := Run(set, c)
			o.Print(os.Stdout)
		}
	}
	return nil
}
