// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// One Go process with a memory habit: mem MODE key=value... It runs until it is killed. Sizes are MiB, times are
// seconds of the recording; test/recordings/README.md describes the modes.
package main

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

var (
	opt     = map[string]string{}
	started = time.Now()
	live    []*row
	kept    [][]*row
	index   = map[int][16]int{}
)

type row struct {
	id   int
	next *row
	body [200]byte
}

func num(name string, fallback float64) float64 {
	if v, err := strconv.ParseFloat(opt[name], 64); err == nil {
		return v
	}
	return fallback
}

func jitter(x float64) float64 { return x * (0.6 + 0.8*rand.Float64()) }
func seconds() float64         { return time.Since(started).Seconds() }
func pause()                   { time.Sleep(500 * time.Millisecond) }

func objects(mib float64) []*row {
	out := make([]*row, 0, int(mib*4700))
	for i := range cap(out) {
		r := &row{id: i}
		r.body[i%200] = 1
		out = append(out, r)
	}
	return out
}

func blob(mib float64) []byte {
	b := make([]byte, int(mib*(1<<20)))
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return b
}

func steady() {
	for ; ; pause() {
		objects(jitter(num("garbage", 2)))
	}
}

func warm() {
	var cache [][]byte
	for ; ; pause() {
		want := num("cache", 60) * (1 - math.Exp(-seconds()/num("tau", 120)))
		for float64(len(cache))/4 < want {
			cache = append(cache, blob(0.25))
		}
		objects(jitter(1))
	}
}

func burst() {
	for due := num("period", 90); ; pause() {
		if seconds() > due {
			held := make([][]byte, int(jitter(num("size", 80)))/4)
			for i := range held {
				held[i] = blob(4)
			}
			time.Sleep(time.Duration(num("hold", 8) * float64(time.Second)))
			clear(held)
			due = seconds() + jitter(num("period", 90))
		}
		objects(jitter(2))
	}
}

// retain fills a map at every import and empties it again: Go's maps never release their buckets.
func retain() {
	at := strings.Split(opt["at"], ",")
	imported := 0
	for ; ; pause() {
		if len(at) > 0 {
			if due, err := strconv.ParseFloat(at[0], 64); err == nil && seconds() > due {
				at = at[1:]
				imported++
				rows := int(num("size", 60) * float64(imported) * 5000)
				for i := range rows {
					index[i] = [16]int{i}
				}
				for i := range rows {
					delete(index, i)
				}
			}
		}
		objects(jitter(1))
	}
}

func leak() {
	for ; ; pause() {
		objects(jitter(num("garbage", 2)))
		kept = append(kept, objects(jitter(num("rate", 0.15))/2))
	}
}

// goroutines leaks goroutines that wait forever, each with its stack and a buffer.
func goroutines() {
	never := make(chan int)
	for ; ; pause() {
		objects(jitter(num("garbage", 1)))
		for range int(jitter(num("rate", 0.15)) / 2 * 64) {
			go func() {
				held := blob(1.0 / 72)
				<-never
				_ = held[0]
			}()
		}
	}
}

func wave() {
	var held [][]byte
	for ; ; pause() {
		want := int(num("size", 60) * (0.5 - 0.5*math.Cos(2*math.Pi*seconds()/num("period", 240))))
		for len(held) < want {
			held = append(held, blob(1))
		}
		clear(held[want:])
		held = held[:want]
		objects(jitter(2))
	}
}

func main() {
	for _, kv := range os.Args[2:] {
		k, v, _ := strings.Cut(kv, "=")
		opt[k] = v
	}
	live = objects(num("live", 20))
	map[string]func(){
		"steady": steady, "warm": warm, "burst": burst, "retain": retain, "leak": leak, "goroutines": goroutines,
		"wave": wave,
		"fill": steady, // GOGC=off with GOMEMLIMIT makes it fill
	}[os.Args[1]]()
}
