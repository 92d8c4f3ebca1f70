// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// storedStalls is the stored form, beside the kills in the ledger.
type storedStalls struct {
	Kept   map[string][]storedStall `json:"kept,omitempty"`
	Totals map[string]int64         `json:"totals,omitempty"`
}

type storedStall struct {
	Pod      string       `json:"p"`
	UID      types.UID    `json:"u"`
	Limit    memory.Bytes `json:"l"`
	Since    int64        `json:"s"`
	Known    int64        `json:"k"`
	Ended    int64        `json:"e,omitempty"`
	Anon     memory.Bytes `json:"a,omitempty"`
	Usage    memory.Bytes `json:"us,omitempty"`
	Faults   int32        `json:"f,omitempty"`
	Pressure int32        `json:"pr,omitempty"`
	RaisedTo memory.Bytes `json:"rt,omitempty"`
	After    int32        `json:"fa,omitempty"`
	InVain   bool         `json:"nr,omitempty"`

	Program   string `json:"pg,omitempty"`
	Account   string `json:"ac,omitempty"`
	AccountAt int64  `json:"at,omitempty"`
}

// store is nil when there is nothing to store.
func (s *stalls) store() *storedStalls {
	if len(s.totals) == 0 {
		return nil
	}
	out := &storedStalls{Kept: map[string][]storedStall{}, Totals: s.totals}
	for name, kept := range s.kept {
		for i := range kept {
			k := &kept[i]
			out.Kept[name] = append(out.Kept[name], storedStall{
				Pod: k.Container.Pod, UID: k.Container.UID, Limit: k.Limit,
				Since: unix(k.Since), Known: unix(k.Known), Ended: unix(k.Ended),
				Anon: k.Anon, Usage: k.Usage, Faults: k.Faults, Pressure: k.PressurePercent,
				RaisedTo: k.RaisedTo, After: k.FaultsAfter, InVain: k.NotRelieved,
				Account: k.Account, AccountAt: unix(k.AccountAt), Program: k.Program,
			})
		}
	}
	return out
}

func restoreStalls(in *storedStalls, namespace string) (out stalls) {
	if in == nil {
		return out
	}
	out.make()
	maps.Copy(out.totals, in.Totals)
	for name, kept := range in.Kept {
		for _, k := range kept[max(0, len(kept)-StallsKept):] {
			out.kept[name] = append(out.kept[name], memory.Stall{
				Container: memory.ContainerRef{Namespace: namespace, Pod: k.Pod, UID: k.UID, Container: name}, Limit: k.Limit,
				Since: fromUnix(k.Since), Known: fromUnix(k.Known), Ended: fromUnix(k.Ended), Anon: k.Anon, Usage: k.Usage,
				Faults: k.Faults, PressurePercent: k.Pressure, RaisedTo: k.RaisedTo, FaultsAfter: k.After, NotRelieved: k.InVain,
				Account: k.Account, AccountAt: fromUnix(k.AccountAt), Program: k.Program,
			})
		}
	}
	return out
}
