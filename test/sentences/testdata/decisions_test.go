// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// TestDecisions simulates ordinary days and kills as the tests of this package do, and writes the decisions and the
// text for users to two files. test/sentences adds it to the package with an overlay.
func TestDecisions(t *testing.T) {
	var decided, shown strings.Builder
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 32))
		mode := []v1alpha1.SizingMode{
			v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict,
		}[seed]
		d := newDay(t, mode, sizeMi(256, 512), memory.Bytes(40+rng.IntN(200))*memory.MiB, 2+rng.IntN(4))
		for range 25 {
			d.run(time.Hour, 5*time.Minute)
			write(&decided, &shown, d)
		}
		for range 12 {
			d.ordinaryEvent(rng)
			d.run(time.Duration(1+rng.IntN(60))*time.Minute, time.Minute)
			write(&decided, &shown, d)
		}
	}
	for seed := range uint64(12) {
		c := newCluster(t, seed)
		c.run(80)
		for _, p := range c.Pods {
			fmt.Fprintln(&decided, p.Name, p.Limit, p.Resizes, p.Ends)
		}
		fmt.Fprintln(&decided, c.resized, c.evicted, c.counted, decisions(&c.shown))
	}
	for env, text := range map[string]string{"DECIDED": decided.String(), "SHOWN": shown.String()} {
		if err := os.WriteFile(os.Getenv(env), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func write(decided, shown *strings.Builder, d *day) {
	for _, p := range d.pods {
		fmt.Fprintln(decided, p.name, p.image, p.size, p.restarts, p.resized)
	}
	fmt.Fprintln(decided, d.kills, decisions(&d.shown))
	data, err := json.Marshal(d.shown)
	if err != nil {
		d.t.Fatal(err)
	}
	shown.Write(append(data, '\n'))
}

// decisions returns the parts of a status that are not only text for users.
func decisions(s *v1alpha1.MemoryRecommendationStatus) string {
	all := []any{s.Canary, s.OOMKills, s.Stalls, s.Coverage}
	for i := range s.Containers {
		c := s.Containers[i]
		c.Summary, c.Reasons, c.Advice, c.Runtime, c.Settings = "", nil, nil, "", nil
		if c.Identity != nil {
			identity := *c.Identity
			identity.Evidence = ""
			c.Identity = &identity
		}
		if c.Shape != nil {
			shape := *c.Shape
			shape.Summary = ""
			c.Shape = &shape
		}
		all = append(all, c)
	}
	for _, c := range s.Conditions {
		all = append(all, c.Type, c.Status, c.Reason)
	}
	for i := range s.RecentChanges {
		all = append(all, s.RecentChanges[i].Kind, s.RecentChanges[i].Pod, s.RecentChanges[i].Time)
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(data)
}
