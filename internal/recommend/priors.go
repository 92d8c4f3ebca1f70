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
	// imagesKept is the maximum number of entries: their text, and kubectl apply's copy of it, fit into annotations.
	imagesKept = 256
	// longestPriors is more than the longest text of imagesKept entries, in bytes.
	longestPriors = 256 << 10
)

// Prior describes the bursts of other young containers that run the same image and command.
type Prior struct {
	// Image is the image without tag and digest.
	Image string
	// Containers is the least number of containers that had bursts.
	Containers int
	// Young is the age up to which the container with the largest bursts would have needed headroom for them.
	Young period.Evidence
}

// Priors has the evidence of young containers, by program: an image without tag and digest and, after a #, a text that
// distinguishes commands. Values only grow, so that the order of merging does not matter, and merging twice has no
// effect.
type Priors map[string]Learned

// Learned is the evidence of young containers that run one program.
type Learned struct {
	// Hours is [Prior.Young] in hours.
	Hours float64 `json:"hours"`
	// Containers has a bit, chosen by a hash, for each container that had bursts.
	Containers uint64 `json:"containers"`
	// Day is the last day on which a container had bursts, in days since 1970.
	Day int64 `json:"day"`
}

// ReadPriors parses the text of [Priors.Text], which a user may have edited. It ignores entries that are out of bounds,
// and replaces a day in the future by today.
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

// Text returns the priors as JSON. Equal priors have equal texts.
func (p Priors) Text() []byte {
	text, err := json.Marshal(p)
	if err != nil { // never, because Add ignores numbers that JSON cannot represent
		return nil
	}
	return text
}

// Add merges evidence into the entry of a program. Beyond imagesKept entries it deletes the oldest.
func (p Priors) Add(runs string, l Learned) {
	m := DefaultModel()
	least, most := m.young(Frugal).Hours(), m.young(Cautious).Hours()
	if !printable(runs) || !(l.Hours > least) || l.Containers == 0 || l.Day < 0 {
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

// printable reports whether the name of a program is short and printable ASCII, because reasons quote it.
func printable(runs string) bool {
	const longest = 255
	return runs != "" && len(runs) <= longest &&
		!strings.ContainsFunc(runs, func(r rune) bool { return r <= ' ' || r > '~' })
}

// AddAll merges all entries of other priors.
func (p Priors) AddAll(of Priors) {
	for runs, l := range of {
		p.Add(runs, l)
	}
}

// Of returns the prior of containers that run the program runs, without the container whose bit is own. It is zero if
// there are no others, or if their evidence is older than histories are kept.
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
