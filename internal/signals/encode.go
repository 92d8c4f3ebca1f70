// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// ledgerVersion is the version of the JSON below. A ledger of another version is refused, never guessed at.
const ledgerVersion = 1

// The stored form: short keys, Unix seconds, nothing that is zero. A pod that restarted costs about 130 bytes, a kill about 200.
type (
	storedLedger struct {
		Version   int                                 `json:"v"`
		Namespace string                              `json:"ns,omitempty"`
		Since     int64                               `json:"since,omitempty"`
		Limits    map[string]storedBirth              `json:"limits,omitempty"`
		Pods      map[types.UID]storedPod             `json:"pods,omitempty"`
		Kills     map[string][]storedKill             `json:"kills,omitempty"`
		Totals    map[string]map[memory.OOMKind]int64 `json:"totals,omitempty"`
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
		Limit      memory.Bytes      `json:"l,omitempty"`
		Asked      memory.Bytes      `json:"la,omitempty"`
		Peak       memory.Bytes      `json:"r,omitempty"`
		Uptime     int64             `json:"up,omitempty"`
		Confidence memory.Confidence `json:"c"`
		Evidence   string            `json:"e"`
	}
)

// MarshalJSON writes the ledger; equal ledgers give equal bytes.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	s := storedLedger{
		Version: ledgerVersion, Namespace: l.namespace, Since: unix(l.since), Totals: l.totals, Limits: map[string]storedBirth{},
		Pods: map[types.UID]storedPod{}, Kills: map[string][]storedKill{},
	}
	for name, b := range l.limits {
		s.Limits[name] = storedBirth{b.limit, unix(b.pod)}
	}
	for uid, p := range l.pods {
		sp := storedPod{Gone: unix(p.gone), Containers: map[string]storedCursor{}}
		for name, c := range p.containers {
			sc := storedCursor{
				Next: c.next, ID: c.id, Finished: unix(c.finished), Asked: c.asked, LimitOf: c.limitOf,
				Count: c.count, CounterID: c.counterID, CounterOf: c.counterOf, CountedAt: unix(c.countedAt),
			}
			if c.limited {
				sc.Limit = &c.limit
			}
			sp.Containers[name] = sc
		}
		s.Pods[uid] = sp
	}
	for name, kills := range l.kills {
		for _, k := range kills {
			s.Kills[name] = append(s.Kills[name], storedKill{
				Pod: k.Container.Pod, UID: k.Container.UID, Kind: k.Kind, Time: unix(k.Time), Limit: k.Limit, Asked: k.Asked,
				Peak: k.Peak, Uptime: int64(k.Uptime / time.Second), Confidence: k.Confidence, Evidence: k.Evidence,
			})
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON replaces the ledger by the one written. A ledger of a newer memfit is an error, and l stays as it was.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var s storedLedger
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading the OOM ledger: %w", err)
	}
	if s.Version != ledgerVersion {
		return fmt.Errorf("reading the OOM ledger: version %d, this memfit knows %d", s.Version, ledgerVersion)
	}
	*l = Ledger{namespace: s.Namespace, since: fromUnix(s.Since), totals: s.Totals}
	l.make()
	for name, b := range s.Limits {
		l.limits[name] = birth{b.Limit, fromUnix(b.Pod)}
	}
	for uid, sp := range s.Pods {
		p := &pod{gone: fromUnix(sp.Gone), containers: map[string]*cursor{}}
		for name, sc := range sp.Containers {
			c := &cursor{
				next: sc.Next, id: sc.ID, finished: fromUnix(sc.Finished), asked: sc.Asked, limitOf: sc.LimitOf,
				count: sc.Count, counterID: sc.CounterID, counterOf: sc.CounterOf, countedAt: fromUnix(sc.CountedAt),
			}
			if sc.Limit != nil {
				c.limited, c.limit = true, *sc.Limit
			}
			p.containers[name] = c
		}
		l.pods[uid] = p
	}
	for name, kills := range s.Kills {
		for _, k := range kills[max(0, len(kills)-KillsKept):] {
			l.kills[name] = append(l.kills[name], memory.OOMKill{
				Container: memory.ContainerRef{Namespace: s.Namespace, Pod: k.Pod, UID: k.UID, Container: name},
				Kind:      k.Kind, Time: fromUnix(k.Time), Limit: k.Limit, Asked: k.Asked, Peak: k.Peak, Uptime: time.Duration(k.Uptime) * time.Second,
				Confidence: k.Confidence, Evidence: k.Evidence,
			})
		}
	}
	return nil
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
	return time.Unix(s, 0).UTC()
}
