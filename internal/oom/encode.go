// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/codec"
	"github.com/memfit/memfit/internal/memory"
)

// A stored ledger is the length of a head, the head as JSON, and the packed cursors (pack.go). Its version is that of
// the MemoryCheckpoint (v1alpha1.CheckpointVersion).
//
// The head has short keys, Unix seconds, and nothing that is zero. A kill takes about 200 bytes, and 500 with what an
// agent saw of it.
type (
	storedLedger struct {
		Namespace string                              `json:"ns,omitempty"`
		Since     int64                               `json:"since,omitempty"`
		Names     []string                            `json:"names,omitempty"`
		Limits    map[string]storedBirth              `json:"limits,omitempty"`
		Kills     map[string][]storedKill             `json:"kills,omitempty"`
		Totals    map[string]map[memory.OOMKind]int64 `json:"totals,omitempty"`
		Hours     map[int64]int64                     `json:"hours,omitempty"`
		Stalls    *storedStalls                       `json:"stalls,omitempty"`
	}
	storedBirth struct {
		Limit memory.Bytes `json:"l,omitempty"`
		Pod   int64        `json:"b,omitempty"`
	}
	storedKill struct {
		Pod        string            `json:"p"`
		UID        types.UID         `json:"u"`
		Kind       memory.OOMKind    `json:"k"`
		Time       int64             `json:"t,omitempty"`
		Seen       int64             `json:"s,omitempty"`
		Limit      memory.Bytes      `json:"l,omitempty"`
		Asked      memory.Bytes      `json:"la,omitempty"`
		Proven     bool              `json:"lp,omitempty"`
		Peak       memory.Bytes      `json:"r,omitempty"`
		Uptime     int64             `json:"up,omitempty"`
		Confidence memory.Confidence `json:"c"`
		Why        string            `json:"e"`
		Account    string            `json:"a,omitempty"`
		AccountAt  int64             `json:"at,omitempty"`
		AgentOnly  bool              `json:"ao,omitempty"`
		Program    string            `json:"pg,omitempty"`
	}
)

// MarshalBinary writes the ledger; equal ledgers give equal bytes.
func (l *Ledger) MarshalBinary() ([]byte, error) {
	names := slices.Sorted(maps.Keys(l.names))
	s := storedLedger{
		Namespace: l.namespace, Since: unix(l.since), Totals: l.totals, Hours: l.hours, Names: names,
		Limits: map[string]storedBirth{},
		Kills:  map[string][]storedKill{}, Stalls: l.stalls.store(),
	}
	for name, b := range l.limits {
		s.Limits[name] = storedBirth{b.limit, unix(b.pod)}
	}
	for name, kills := range l.kills {
		for _, k := range kills {
			s.Kills[name] = append(s.Kills[name], storedKill{
				Pod: k.Container.Pod, UID: k.Container.UID, Kind: k.Kind, Time: unix(k.Time), Seen: unix(k.Seen), Limit: k.Limit,
				Asked:  k.Asked,
				Proven: k.Proven, Peak: k.Peak, Uptime: int64(k.Uptime / time.Second), Confidence: k.Confidence,
				Why: k.Why, Account: k.Account, AccountAt: unix(k.AccountAt), AgentOnly: k.AgentOnly,
				Program: k.Program,
			})
		}
	}
	head, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the OOM ledger: %w", err)
	}
	w := codec.Writer(append(binary.AppendUvarint(nil, uint64(len(head))), head...))
	l.packPods(w, names)
	return w.Data(), nil
}

// UnmarshalBinary replaces the ledger by the one written. With an error, l is unchanged.
func (l *Ledger) UnmarshalBinary(data []byte) error {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) { //nolint:gosec // n bytes of data were read
		return errors.New("reading the OOM ledger: it is cut off")
	}
	head, cursors := data[n:n+int(size)], data[n+int(size):] //nolint:gosec // checked above
	var s storedLedger
	if err := json.Unmarshal(head, &s); err != nil {
		return fmt.Errorf("reading the OOM ledger: %w", err)
	}
	read := &Ledger{
		namespace: s.Namespace, since: fromUnix(s.Since), totals: s.Totals, hours: newestHours(s.Hours),
		notFollowed: l.notFollowed,
		stalls:      restoreStalls(s.Stalls, s.Namespace),
	}
	read.make()
	if err := read.unpackPods(codec.Reader(cursors), s.Names); err != nil {
		return fmt.Errorf("reading the OOM ledger: %w", err)
	}
	read.readHead(&s)
	*l = *read
	return nil
}

func (l *Ledger) readHead(s *storedLedger) {
	for name, b := range s.Limits {
		l.limits[name] = birth{b.Limit, fromUnix(b.Pod)}
	}
	for name, kills := range s.Kills {
		for _, k := range kills[max(0, len(kills)-KillsKept):] {
			l.kills[name] = append(l.kills[name], memory.OOMKill{
				Container: memory.ContainerRef{Namespace: s.Namespace, Pod: k.Pod, UID: k.UID, Container: name},
				Kind:      k.Kind, Time: fromUnix(k.Time), Seen: fromUnix(k.Seen), Limit: k.Limit, Asked: k.Asked, Proven: k.Proven,
				Peak: k.Peak, Uptime: time.Duration(k.Uptime) * time.Second,
				Confidence: k.Confidence, Why: k.Why, Account: k.Account, AccountAt: fromUnix(k.AccountAt),
				AgentOnly: k.AgentOnly, Program: k.Program,
			})
		}
	}
	l.countKept()
	for name := range l.totals {
		l.names[name] += 0
	}
	for _, name := range slices.Concat(s.Names, slices.Collect(maps.Keys(s.Limits)), slices.Collect(maps.Keys(s.Kills))) {
		l.names[name] += 0
	}
}

// countKept makes the counters hold at least the kills that are kept in detail, as they do in what memfit writes: a
// kill that turns out to be of another kind is taken from one of them.
func (l *Ledger) countKept() {
	for name, kills := range l.kills {
		kept := map[memory.OOMKind]int64{}
		for i := range kills {
			kept[kills[i].Kind]++
		}
		if l.totals[name] == nil {
			l.totals[name] = kept
		}
		for kind, n := range kept {
			l.totals[name][kind] = max(l.totals[name][kind], n)
		}
	}
}

// newestHours are as many hours as are kept, with counts that can be.
func newestHours(all map[int64]int64) map[int64]int64 {
	kept := map[int64]int64{}
	for _, hour := range slices.Sorted(maps.Keys(all))[max(0, len(all)-hoursKept):] {
		if all[hour] > 0 {
			kept[hour] = min(all[hour], math.MaxInt32)
		}
	}
	return kept
}

// unix is 0 for the zero time, so that it is left out.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromUnix(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return plausible(time.Unix(s, 0))
}
