// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// modelSchedule: 888 samples a container.
var modelSchedule = schedule{days: 15 * time.Minute, recent: time.Minute, span: 2 * time.Hour}

// memfitModel is what memfit must know of each container, and one recommendation for each: no pods, no API objects.
func memfitModel(containers int) (cost, error) {
	limits := make([]memory.Bytes, containers)
	histories := make([]*history.Container, containers)
	heap := grown(func() {
		for i := range histories {
			histories[i], limits[i] = remember(
				newContainer(i), memory.ContainerRef{Namespace: "shop", Pod: name(i), UID: types.UID(name(i)), Container: "app"},
			)
		}
	})
	answered := 0
	pass, err := processorTime(func() error {
		answered = 0
		for i, h := range histories {
			rec := recommend.Evaluate(recommend.Input{
				History: h, Policy: recommend.DefaultPolicy(), Current: memory.Size{Request: limits[i], Limit: limits[i]},
				Now: epoch,
			})
			if rec.Summary != "" {
				answered++
			}
		}
		return nil
	})
	if err == nil && answered != containers {
		err = fmt.Errorf("memfit answered for %d of %d containers", answered, containers)
	}
	var stored memory.Bytes
	for _, h := range histories {
		packed, packErr := h.MarshalBinary()
		if packErr != nil {
			return cost{}, packErr
		}
		stored += memory.Bytes(base64.StdEncoding.EncodedLen(len(packed))) // as JSON carries bytes
	}
	runtime.KeepAlive(histories)
	return cost{
		what: "model", server: "memfit", containers: containers, perWorkload: 1, pass: pass, heap: heap, checkpoint: stored,
	}, err
}

func remember(c *container, ref memory.ContainerRef) (*history.Container, memory.Bytes) {
	h := history.New()
	modelSchedule.each(func(at time.Time) {
		started := c.started
		rss, killed := c.use(at)
		h.Add(
			memory.Sample{
				Container: ref, Time: at, Started: started, RSS: rss, HasRSS: true, Exact: true, WorkingSet: rss + 8*memory.MiB,
			},
			c.limit,
		)
		if killed {
			h.Restarted(ref, at)
		}
	})
	return h, c.limit
}
