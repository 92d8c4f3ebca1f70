// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ReadRecordings reads a directory of process recordings (test/recordings/README.md) as one set: every replica is a
// series, and a recorded second represents the seconds in second_is of recordings.csv. ok is false for a directory
// without recordings.csv.
func ReadRecordings(dir string) (set Set, ok bool, err error) {
	index, err := readCSV(filepath.Join(dir, "recordings.csv"))
	if errors.Is(err, os.ErrNotExist) {
		return Set{}, false, nil
	}
	if err != nil {
		return Set{}, false, err
	}
	set.Name = "recordings"
	for _, row := range index {
		seconds, err := strconv.ParseInt(row["second_is"], 10, 64)
		if err != nil {
			return Set{}, false, fmt.Errorf("recordings.csv, %s: %w", row["name"], err)
		}
		series, err := readRecording(filepath.Join(dir, row["name"]+".csv.gz"), row["name"], seconds)
		if err != nil {
			return Set{}, false, err
		}
		set.Series = append(set.Series, series...)
	}
	slices.SortFunc(set.Series, func(a, b Series) int { return strings.Compare(a.Name, b.Name) })
	return set, true, nil
}

// readRecording makes one series of each replica.
func readRecording(path, name string, seconds int64) ([]Series, error) {
	rows, err := readCSV(path)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	var all []Series
	for _, row := range rows {
		n, err := strconv.ParseInt(row["second"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		kib, err := strconv.ParseInt(row["anon_kib"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		i, found := at[row["replica"]]
		if !found {
			i = len(all)
			at[row["replica"]] = i
			all = append(all, Series{Name: name + "/" + row["replica"]})
		}
		all[i].Points = append(all[i].Points, Point{generatedStart + n*seconds, kib << 10})
	}
	return all, nil
}

// readCSV reads a small file with a header into rows by column name.
func readCSV(path string) ([]map[string]string, error) {
	r, err := open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var rows []map[string]string
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		row := map[string]string{}
		for i, name := range header {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
}
