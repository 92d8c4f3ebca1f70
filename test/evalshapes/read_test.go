// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package evalshapes

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// recording is one recorded workload: the input of a classifier, without its label.
type recording struct {
	name, runtime string
	overhead      memory.Bytes
	// second is the duration that one recorded second represents.
	second  time.Duration
	samples []sample
}

// sample is one row of a recording.
type sample struct {
	second             int
	replica, instance  int
	limit, cap, memory memory.Bytes
	cpu                time.Duration
}

// label is the expected class of a recording.
type label struct {
	name string
	sick string // the replica that must be reported as an outlier; "": none
}

// overheads are the memory of runtimes outside their heap cap; the Go runtime's limit includes all of its memory.
var overheads = map[string]memory.Bytes{"node": 48 * memory.MiB, "jvm": 64 * memory.MiB}

// heldOut is true for recordings made after the classifier was finished: their names end in -2x.
func (r recording) heldOut() bool {
	i := strings.LastIndexByte(r.name, '-')
	return len(r.name)-i == 3 && r.name[i+1] == '2'
}

// table reads a CSV file with a header into one map per row.
func table(r io.Reader) ([]map[string]string, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no header")
	}
	var out []map[string]string
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = row[i]
		}
		out = append(out, m)
	}
	return out, nil
}

func tableFile(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := table(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}

// recordings reads the recordings in a directory, without labels.
func recordings(dir string) ([]recording, error) {
	rows, err := tableFile(filepath.Join(dir, "recordings.csv"))
	if err != nil {
		return nil, err
	}
	var out []recording
	for _, row := range rows {
		seconds, err := strconv.Atoi(row["second_is"])
		if err != nil {
			return nil, fmt.Errorf("recordings.csv: %s: second_is: %w", row["name"], err)
		}
		r := recording{
			name: row["name"], runtime: row["runtime"], overhead: overheads[row["runtime"]],
			second: time.Duration(seconds) * time.Second,
		}
		if r.samples, err = readSamples(filepath.Join(dir, r.name+".csv.gz")); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func readSamples(path string) ([]sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	rows, err := table(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := make([]sample, 0, len(rows))
	for i, row := range rows {
		var n [7]int
		for j, name := range []string{"second", "replica", "instance", "limit_mib", "cap_mib", "anon_kib", "cpu_ms"} {
			if n[j], err = strconv.Atoi(row[name]); err != nil {
				return nil, fmt.Errorf("%s: row %d: %s: %w", path, i+2, name, err)
			}
		}
		out = append(out, sample{
			second: n[0], replica: n[1], instance: n[2], limit: memory.Bytes(n[3]) * memory.MiB,
			cap:    memory.Bytes(n[4]) * memory.MiB,
			memory: memory.Bytes(n[5]) * memory.KiB, cpu: time.Duration(n[6]) * time.Millisecond,
		})
	}
	return out, nil
}

// labels reads the labels of recordings, by name.
func labels(dir string) (map[string]label, error) {
	rows, err := tableFile(filepath.Join(dir, "labels.csv"))
	if err != nil {
		return nil, err
	}
	out := map[string]label{}
	for _, row := range rows {
		out[row["name"]] = label{name: row["label"], sick: row["sick"]}
	}
	return out, nil
}
