// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
)

// The generated set: ten common patterns of memory use, four containers of each, nine weeks at a sample per five
// minutes.
const (
	generatedDays  = 63
	generatedStep  = 300
	generatedStart = 1767571200 // Monday 2026-01-05, midnight UTC
	perPattern     = 4
)

// shape returns the demand at a time, in multiples of the container's base size. day is days since the start, with
// fraction.
type shape func(day float64) float64

// patterns make a container of each kind, with parameters drawn from r. Noise is added later.
var patterns = []struct {
	name string
	make func(r *rand.Rand) shape
}{
	{"flat", func(r *rand.Rand) shape { return func(float64) float64 { return 1 } }},
	{"diurnal", diurnal},
	{"weekly", weekly},
	{"monthly", monthly},
	{"spike", spike},
	{"ramp", ramp},
	{"leak", leak},
	{"sawtooth", sawtooth},
	{"step", step},
	{"limit-following", limitFollowing},
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

func diurnal(r *rand.Rand) shape {
	swing, top := between(r, 0.3, 1.5), between(r, 0, 1)
	return func(day float64) float64 { return 1 + swing*(1+math.Cos(2*math.Pi*(day-top)))/2 }
}

func weekly(r *rand.Rand) shape {
	office, swing := between(r, 0.4, 1.5), between(r, 0.1, 0.5)
	return func(day float64) float64 {
		_, hour := math.Modf(day)
		if math.Mod(day, 7) >= 5 || hour < 7./24 || hour > 19./24 {
			return 1
		}
		return 1 + office + swing*math.Sin(math.Pi*(hour*24-7)/12)
	}
}

func monthly(r *rand.Rand) shape {
	first, high, hours := between(r, 2, 25), between(r, 2, 4), between(r, 1, 5)
	return func(day float64) float64 {
		if since := math.Mod(day-first+300, 30); day >= first && since*24 < hours {
			return high
		}
		return 1
	}
}

// randomTimes draws times in days with exponential gaps.
func randomTimes(r *rand.Rand, everyDays float64) []float64 {
	var at []float64
	for t := r.ExpFloat64() * everyDays; t < generatedDays; t += r.ExpFloat64() * everyDays {
		at = append(at, t)
	}
	return at
}

func spike(r *rand.Rand) shape {
	type burst struct{ from, to, high float64 }
	var bursts []burst
	for _, t := range randomTimes(r, between(r, 2, 8)) {
		bursts = append(bursts, burst{t, t + between(r, 5, 60)/1440, between(r, 1.5, 3)})
	}
	return func(day float64) float64 {
		for _, b := range bursts {
			if day >= b.from && day < b.to {
				return b.high
			}
		}
		return 1
	}
}

func ramp(r *rand.Rand) shape {
	growth := between(r, 0.5, 3)
	return func(day float64) float64 { return 1 + growth*day/generatedDays }
}

// leak grows until the next deploy.
func leak(r *rand.Rand) shape {
	perDay, deploys := between(r, 0.03, 0.25), randomTimes(r, between(r, 5, 12))
	return func(day float64) float64 {
		last := 0.
		for _, d := range deploys {
			if d <= day {
				last = d
			}
		}
		return 1 + perDay*(day-last)
	}
}

// sawtooth is the demand of a garbage-collected heap.
func sawtooth(r *rand.Rand) shape {
	height, period := between(r, 0.3, 1.2), between(r, 20, 180)/1440
	return func(day float64) float64 { return 1 + height*math.Mod(day, period)/period }
}

func step(r *rand.Rand) shape {
	at := randomTimes(r, between(r, 6, 15))
	level := make([]float64, len(at)+1)
	for i := range level {
		level[i] = between(r, 0.6, 2.2)
	}
	return func(day float64) float64 {
		i := 0
		for i < len(at) && at[i] <= day {
			i++
		}
		return level[i]
	}
}

// limitFollowing fills its heap cap within hours of a start, collects, and stays near the cap until the next deploy.
func limitFollowing(r *rand.Rand) shape {
	capAt, fillDays, deploys := between(r, 1.5, 3), between(r, 1, 12)/24, randomTimes(r, 10)
	wave := between(r, 0.02, 0.12)
	return func(day float64) float64 {
		last := 0.
		for _, d := range deploys {
			if d <= day {
				last = d
			}
		}
		filled := 1 + (capAt-1)*(1-math.Exp(-(day-last)/fillDays))
		return filled * (1 - wave*math.Mod(day*48, 1))
	}
}

// Generate makes the set of one seed. Equal seeds give equal sets.
func Generate(seed uint64) Set {
	set := Set{Name: fmt.Sprintf("generated-%d", seed)}
	for i, pattern := range patterns {
		for n := range perPattern {
			r := rand.New(rand.NewPCG(seed, uint64(i*100+n)))
			set.Series = append(set.Series, Series{
				Name:   fmt.Sprintf("%s-%d", pattern.name, n+1),
				Points: sampled(r, pattern.make(r)),
			})
		}
	}
	return set
}

// sampled scales a shape by a size between 24 MiB and 4 GiB and adds the noise of a live process: half a percent to
// three, correlated over about half an hour.
func sampled(r *rand.Rand, demand shape) []Point {
	base := 24 * math.Pow(4096./24, r.Float64()) * (1 << 20)
	noise, drift := between(r, 0.005, 0.03), 0.
	points := make([]Point, 0, generatedDays*86400/generatedStep)
	for t := int64(0); t < generatedDays*86400; t += generatedStep {
		drift = 0.85*drift + 0.53*r.NormFloat64()
		b := base * demand(float64(t)/86400) * (1 + noise*drift)
		points = append(points, Point{generatedStart + t, int64(b) &^ 4095})
	}
	return points
}

// WriteSet writes a set in the format [ReadSet] reads.
func WriteSet(path string, set Set) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	w := bufio.NewWriter(z)
	fmt.Fprintln(w, traceHeader)
	for _, s := range set.Series {
		for _, p := range s.Points {
			fmt.Fprintf(w, "%s,%d,%d\n", s.Name, p.Unix, p.Bytes)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}
