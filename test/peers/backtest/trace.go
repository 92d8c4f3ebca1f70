// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Point is one sample of a trace.
type Point struct {
	Unix  int64
	Bytes int64
}

// Series is the demand of one container over time, oldest sample first.
type Series struct {
	Name   string
	Points []Point
}

// Set is one file of traces.
type Set struct {
	Name   string
	Series []Series
}

// FindSets lists the trace files of a directory by name: NAME.csv.gz and NAME.csv with the header
// "series,unix_seconds,bytes". It omits CSV files with another header (limits, labels).
func FindSets(dir string) ([]string, error) {
	var files []string
	for _, pattern := range []string{"*.csv.gz", "*.csv"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	var traces []string
	for _, file := range files {
		header, err := readHeader(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if header == traceHeader {
			traces = append(traces, file)
		}
	}
	return traces, nil
}

const traceHeader = "series,unix_seconds,bytes"

func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

func readHeader(path string) (string, error) {
	r, err := open(path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// ReadSet reads one trace file.
func ReadSet(path string) (Set, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
	r, err := open(path)
	if err != nil {
		return Set{}, err
	}
	defer r.Close()
	series, err := parse(r)
	if err != nil {
		return Set{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return Set{Name: name, Series: series}, nil
}

// parse reads the CSV and returns its series by name, their points by time.
func parse(r io.Reader) ([]Series, error) {
	in := bufio.NewScanner(r)
	index := map[string]int{}
	var all []Series
	for line := 1; in.Scan(); line++ {
		text := bytes.TrimSpace(in.Bytes())
		if line == 1 || len(text) == 0 {
			continue
		}
		name, point, err := parseLine(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		i, ok := index[string(name)]
		if !ok {
			i = len(all)
			index[string(name)] = i
			all = append(all, Series{Name: string(name)})
		}
		all[i].Points = append(all[i].Points, point)
	}
	for i := range all {
		slices.SortStableFunc(all[i].Points, func(a, b Point) int { return int(a.Unix - b.Unix) })
	}
	slices.SortFunc(all, func(a, b Series) int { return strings.Compare(a.Name, b.Name) })
	return all, in.Err()
}

// parseLine parses the two numbers from the right, so that a series name may contain commas.
func parseLine(line []byte) (name []byte, p Point, err error) {
	i := bytes.LastIndexByte(line, ',')
	j := bytes.LastIndexByte(line[:max(i, 0)], ',')
	if j < 0 {
		return nil, p, fmt.Errorf("%q is not series,unix_seconds,bytes", line)
	}
	if p.Unix, err = strconv.ParseInt(string(line[j+1:i]), 10, 64); err != nil {
		return nil, p, err
	}
	p.Bytes, err = strconv.ParseInt(string(line[i+1:]), 10, 64)
	return line[:j], p, err
}
