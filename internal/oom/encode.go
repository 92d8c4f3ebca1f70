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

	"github.com/memfit/memfit/internal/memory"
)

// ledgerVersion is the first byte of a stored ledger. Then come the length of a head, the head as JSON, and the packed
// cursors (pack.go). A ledger of another version is refused, never guessed at.
const ledgerVersion = 2

// jsonVersion is the version that was JSON throughout, which is still read.
const jsonVersion = 1

// The head: short keys, Unix seconds, nothing that is zero. A kill takes about 200 bytes, and 500 with what
// an agent saw of it. Version and Pods are of jsonVersion only.
type (
	storedLedger struct {
		Version   int                                 `json:"v,omitempty"`
		Namespace string                              `json:"ns,omitempty"`
		Since     int64                               `json:"since,omitempty"`
		Names     []string                            `json:"names,omitempty"`
		Limits    map[string]storedBirth              `json:"limits,omitempty"`
		Pods      map[types.UID]storedPod             `json:"pods,omitempty"`
		Kills     map[string][]storedKill             `json:"kills,omitempty"`
		Totals    map[string]map[memory.OOMKind]int64 `json:"totals,omitempty"`
		Hours     map[int64]int64                     `json:"hours,omitempty"`
		Stalls    *storedStalls                       `json:"stalls,omitempty"`
	}
	storedBirth struct {
		Limit memory.Bytes `json:"l,omitempty"`
		Pod   int64        `json:"b,omitempty"`
	}
	storedPod struct {
		Gone       int64                   `json:"gone,omitempty"`
		Containers map[string]storedCursor `json:"c,omitempty"`
	}
	storedCursor struct {
		Next      int32         `json:"n,omitempty"`
		ID        string        `json:"id,omitempty"`
		Finished  int64         `json:"f,omitempty"`
		Limit     *memory.Bytes `json:"l,omitempty"`
		Asked     memory.Bytes  `json:"la,omitempty"`
		LimitOf   int32         `json:"lo,omitempty"`
		Count     int64         `json:"k,omitempty"`
		CounterID string        `json:"ki,omitempty"`
		CounterOf int32         `json:"ko,omitempty"`
		CountedAt int64         `json:"kt,omitempty"`
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
	data := append(binary.AppendUvarint([]byte{ledgerVersion}, uint64(len(head))), head...)
	return l.appendPods(data, names), nil
}

// ErrTooNew means that a newer memfit wrote the ledger.
var ErrTooNew = errors.New("was written by a newer memfit")

// UnmarshalBinary replaces the ledger by the one written. A ledger of a newer memfit is an error, and l stays as it
// was.
func (l *Ledger) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		return errors.New("reading the OOM ledger: it is empty")
	}
	head, cursors := data, []byte(nil)
	if data[0] != '{' {
		if data[0] > ledgerVersion {
			return fmt.Errorf("the OOM ledger %w (version %d, this one reads up to %d)", ErrTooNew, data[0], ledgerVersion)
		}
		if data[0] != ledgerVersion {
			return fmt.Errorf("reading the OOM ledger: version %d, this memfit knows %d", data[0], ledgerVersion)
		}
		size, n := binary.Uvarint(data[1:])
		if n <= 0 || size > uint64(len(data)-1-n) { //nolint:gosec // n bytes of data[1:] were read
			return errors.New("reading the OOM ledger: it is cut off")
		}
		head, cursors = data[1+n:1+n+int(size)], data[1+n+int(size):] //nolint:gosec // checked above
	}
	var s storedLedger
	if err := json.Unmarshal(head, &s); err != nil {
		return fmt.Errorf("reading the OOM ledger: %w", err)
	}
	if data[0] == '{' && s.Version != jsonVersion {
		return fmt.Errorf("reading the OOM ledger: version %d, this memfit knows %d", s.Version, ledgerVersion)
	}
	read := &Ledger{
		namespace: s.Namespace, since: fromUnix(s.Since), totals: s.Totals, hours: newestHours(s.Hours),
		notFollowed: l.notFollowed,
		stalls:      restoreStalls(s.Stalls, s.Namespace),
	}
	read.make()
	if err := read.readPods(cursors, s.Names); err != nil {
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
	for uid, sp := range s.Pods {
		for name, sc := range sp.Containers {
			l.readStored(l.add(keyOf(uid), name), sc)
		}
		if p := l.pods[keyOf(uid)]; p != nil {
			p.gone = fromUnix(sp.Gone)
		}
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

// readStored reads a cursor of jsonVersion.
func (l *Ledger) readStored(c *cursor, sc storedCursor) {
	c.next, c.id, c.finished, c.limitOf = max(sc.Next, 0), instanceOf(sc.ID), fromUnix(sc.Finished), sc.LimitOf
	c.count = int32(max(min(sc.Count, math.MaxInt32), 0))
	c.counterID, c.counterOf, c.countedAt = instanceOf(sc.CounterID), sc.CounterOf, fromUnix(sc.CountedAt)
	c.counter = sc.Count != 0 || sc.CounterID != "" || sc.CountedAt != 0
	if sc.Limit != nil {
		c.limited, c.limit, c.asked = true, max(*sc.Limit, 0), max(sc.Asked, 0)
	}
	l.bytes += c.cost() - cursorCost
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
