// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/codec"
	"github.com/memfit/memfit/internal/memory"
)

// storedLedger is the head of a stored ledger. The format is the length of the head, the head as JSON, and the packed
// cursors (pack.go). The version of the format is in the MemoryCheckpoint (v1alpha1.CheckpointVersion).
type storedLedger struct {
	Since time.Time            `json:"since,omitzero"`
	Names map[string]*nameData `json:"names,omitempty"`
}

// MarshalBinary encodes the ledger. Equal ledgers have equal encodings.
func (l *Ledger) MarshalBinary() ([]byte, error) {
	head, err := json.Marshal(storedLedger{l.since, l.names})
	if err != nil {
		return nil, fmt.Errorf("encoding the OOM ledger: %w", err)
	}
	w := codec.Writer(append(binary.AppendUvarint(nil, uint64(len(head))), head...))
	l.packPods(w, slices.Sorted(maps.Keys(l.names)))
	return w.Data(), nil
}

// UnmarshalBinary replaces the ledger with the encoded one. If it returns an error, l is unchanged.
func (l *Ledger) UnmarshalBinary(data []byte) error {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) { //nolint:gosec // n bytes of data were read
		return errors.New("reading the OOM ledger: truncated")
	}
	head, cursors := data[n:n+int(size)], data[n+int(size):] //nolint:gosec // checked above
	var s storedLedger
	if err := json.Unmarshal(head, &s); err != nil {
		return fmt.Errorf("reading the OOM ledger: %w", err)
	}
	var read Ledger
	read.initialize()
	read.since = storable(s.Since)
	if l.notFollowed != nil {
		read.notFollowed = l.notFollowed
	}
	for name, of := range s.Names {
		if of == nil {
			of = &nameData{}
		}
		of.Kills = of.Kills[max(0, len(of.Kills)-KillsKept):]
		of.Stalls = of.Stalls[max(0, len(of.Stalls)-StallsKept):]
		of.DroppedStalls = max(0, of.DroppedStalls)
		of.Limit, of.Before = max(0, of.Limit), max(0, of.Before)
		maps.DeleteFunc(of.Dropped, func(_ memory.OOMKind, count int64) bool { return count <= 0 })
		read.names[name] = of
	}
	if err := read.unpackPods(codec.Reader(cursors), slices.Sorted(maps.Keys(read.names))); err != nil {
		return fmt.Errorf("reading the OOM ledger: %w", err)
	}
	*l = read
	return nil
}

// unix returns seconds since 1970; 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
