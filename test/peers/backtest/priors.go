// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// imageOf returns the image and the workload of a series, from its name. Recording go-burst-2/0 has image go-burst and
// workload go-burst-2; pod shop/cart-579f59597d-wc2lz has image shop/cart, and each pod counts as a workload. In other
// sets the image is unknown: "".
func imageOf(set, series string) (image, workload string) {
	workload, cut := series, 2
	switch set {
	case "recordings":
		workload, _, _ = strings.Cut(series, "/")
		cut = 1
	case "nezha-pods":
	default:
		return "", series
	}
	parts := strings.Split(workload, "-")
	return strings.Join(parts[:max(len(parts)-cut, 0)], "-"), workload
}

// Priors replays a set with priors from other workloads of the same image, as they were under Balanced. It prints kills
// and slack of the postures on both halves for priors of at most 0, 1, 2 and all other workloads. A series without
// another workload of its image has no prior.
func Priors(w io.Writer, set Set) {
	taught := make([]memfit, len(set.Series))
	for i, s := range set.Series {
		m := newMemfit(recommend.Balanced)
		Simulate(s, m, false)
		taught[i] = *m
	}
	tuning, reporting := Halves(set)
	for _, known := range []int{0, 1, 2, len(set.Series)} {
		for _, posture := range postures {
			for _, half := range []Set{tuning, reporting} {
				var sum trade
				for _, s := range half.Series {
					m := newMemfit(posture.price)
					m.prior = priorOf(set, taught, s.Name, known)
					o := Outcome{Results: []Result{Simulate(s, m, false)}}
					sum.kills, sum.slack = sum.kills+o.Trade().kills, sum.slack+o.Trade().slack
				}
				fmt.Fprintf(w, "set=%s posture=%s reporting=%t known=%d kills=%g slack=%.2f cost=%.2f\n", set.Name, posture.name,
					half.Series[0].Name == reporting.Series[0].Name, known, sum.kills, sum.slack,
					sum.cost(float64(posture.price)/float64(memory.GiB)))
			}
		}
	}
}

// priorOf returns the prior from up to most other workloads of the image: the next ones by name.
func priorOf(set Set, taught []memfit, name string, most int) (prior recommend.Prior) {
	image, own := imageOf(set.Name, name)
	if image == "" {
		return prior
	}
	prior.Image = image
	var after []int
	for i, s := range set.Series {
		if s.Name > name {
			after = append(after, i)
		}
	}
	for i := range set.Series {
		if len(after) < len(set.Series) {
			after = append(after, i)
		}
	}
	var workloads []string
	for _, i := range after {
		of, workload := imageOf(set.Name, set.Series[i].Name)
		if of != image || workload == own {
			continue
		}
		if len(workloads) == 0 || workloads[len(workloads)-1] != workload {
			workloads = append(workloads, workload)
		}
		if len(workloads) > most {
			break
		}
		if t := taught[i].teaches; t > 0 {
			prior.Containers, prior.Young = prior.Containers+1, max(prior.Young, t)
		}
	}
	return prior
}
