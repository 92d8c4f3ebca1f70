// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/period"
)

const (
	// imagesKept bounds the known images. Their text fits into annotations twice, because kubectl apply keeps a copy of
	// what it applied.
	imagesKept = 256
	// longestPriors is more than the longest text of priors, in bytes.
	longestPriors = 256 << 10
)

// Prior describes the bursts of other young containers that run the same image and command.
type Prior struct {
	// Image is what they run, without tag and digest.
	Image string
	// Containers is the least number of containers that have shown bursts.
	Containers int
	// Young is for how long the container with the largest bursts would have needed space for them.
	Young period.Evidence
}

// Priors holds what was learned from young containers, by what they run: an image without tag and digest and, after a
// #, a text that distinguishes programs. Entries only grow, so that merging is independent of order, and a repeated
// entry counts once.
type Priors map[string]Learned

// Learned holds what young containers that run the same have shown.
type Learned struct {
	// Hours is [Prior.Young].
	Hours float64 `json:"hours"`
	// Containers has a bit for each container that has shown it, by a hash.
	Containers uint64 `json:"containers"`
	// Day is the last day on which a container did, counted from 1970.
	Day int64 `json:"day"`
}

// ReadPriors reads the text of [Priors.Text], which a user may have edited. It ignores entries that are out of bounds,
// and takes a day in the future for today.
func ReadPriors(text []byte, now time.Time) (Priors, error) {
	if len(text) > longestPriors {
		return nil, fmt.Errorf("%d bytes are more than any priors take", len(text))
	}
	var read Priors
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("reading priors: %w", err)
	}
	p := Priors{}
	for image, l := range read {
		l.Day = min(l.Day, period.DayOf(now))
		p.Add(image, l)
	}
	return p, nil
}

// Text returns the same text for equal priors.
func (p Priors) Text() []byte {
	text, err := json.Marshal(p)
	if err != nil { // Add takes no number that JSON cannot write
		return nil
	}
	return text
}

// Add adds what was learned. Beyond imagesKept it drops the oldest entry.
func (p Priors) Add(runs string, l Learned) {
	m := DefaultModel()
	least, most := m.young(Frugal).Hours(), m.young(Cautious).Hours()
	if !plain(runs) || !(l.Hours > least) || l.Containers == 0 || l.Day < 0 {
		return
	}
	had := p[runs]
	p[runs] = Learned{
		Hours: max(had.Hours, min(l.Hours, most)), Containers: had.Containers | l.Containers, Day: max(had.Day, l.Day),
	}
	if len(p) > imagesKept {
		delete(p, slices.MinFunc(slices.Collect(maps.Keys(p)), func(a, b string) int {
			return cmp.Or(cmp.Compare(p[a].Day, p[b].Day), cmp.Compare(p[a].Hours, p[b].Hours), cmp.Compare(a, b))
		}))
	}
}

// plain reports whether what a container runs is short and printable, because reasons quote it.
func plain(runs string) bool {
	const longest = 255
	return runs != "" && len(runs) <= longest &&
		!strings.ContainsFunc(runs, func(r rune) bool { return r <= ' ' || r > '~' })
}

// AddAll adds all entries of other priors.
func (p Priors) AddAll(of Priors) {
	for runs, l := range of {
		p.Add(runs, l)
	}
}

// Of returns the prior of containers that run the program runs, without the container whose bit is own; zero: there
// are no others, or none within the time that histories are kept.
func (p Priors) Of(runs string, own uint64, now time.Time) Prior {
	l := p[runs]
	others := bits.OnesCount64(l.Containers &^ own)
	if others == 0 || period.DayOf(now)-l.Day >= history.DaysKept {
		return Prior{}
	}
	image, _, _ := strings.Cut(runs, "#")
	return Prior{
		Image: image, Containers: others,
		Young: period.Evidence(l.Hours * float64(period.Hour)),
	}
}
