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

	"github.com/memfit/memfit/internal/period"
)

const (
	// imagesKept bounds the images of which something is known. They fit into an annotation, twice: kubectl apply keeps
	// what it applied.
	imagesKept = 256
	// longestPriors is more than any priors take as text.
	longestPriors = 256 << 10
)

// Prior is what others of its image have shown of a young container.
type Prior struct {
	// Image is without tag and digest.
	Image string
	// Containers is how many have shown bursts, at least.
	Containers int
	// Young is for how long the one that burst most would have needed space for bursts.
	Young period.Evidence
}

// Priors is what is known of young containers, by image without tag and digest. It only grows, so that two are put
// together in any order, and what is learned twice counts once.
type Priors map[string]Learned

// Learned is what young containers of an image have shown.
type Learned struct {
	// Hours is [Prior.Young].
	Hours float64 `json:"hours"`
	// Containers has a bit for each container that has shown it, by a hash.
	Containers uint64 `json:"containers"`
	// Day is the last on which one did, counted from 1970.
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

// Text is equal for equal priors.
func (p Priors) Text() []byte {
	text, err := json.Marshal(p)
	if err != nil { // Add takes no number that JSON cannot write
		return nil
	}
	return text
}

// Add takes in what was learned of an image. What is known of the most images that are kept is what was learned last.
func (p Priors) Add(image string, l Learned) {
	least, most := DefaultModel().Frugal.Young.Hours(), DefaultModel().Cautious.Young.Hours()
	if !plain(image) || !(l.Hours > least) || l.Containers == 0 || l.Day < 0 {
		return
	}
	had := p[image]
	p[image] = Learned{
		Hours: max(had.Hours, min(l.Hours, most)), Containers: had.Containers | l.Containers, Day: max(had.Day, l.Day),
	}
	if len(p) > imagesKept {
		delete(p, slices.MinFunc(slices.Collect(maps.Keys(p)), func(a, b string) int {
			return cmp.Or(cmp.Compare(p[a].Day, p[b].Day), cmp.Compare(p[a].Hours, p[b].Hours), cmp.Compare(a, b))
		}))
	}
}

// plain reports whether the name of an image, without tag and digest, is short and printable, because reasons quote it.
func plain(image string) bool {
	const longest = 255
	return image != "" && len(image) <= longest &&
		!strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' || r > '~' })
}

// AddAll takes in all that others have learned.
func (p Priors) AddAll(of Priors) {
	for image, l := range of {
		p.Add(image, l)
	}
}

// Of is what others have shown of an image than the container whose bit is own, which knows that by itself; the zero
// value: nothing.
func (p Priors) Of(image string, own uint64) Prior {
	l := p[image]
	others := bits.OnesCount64(l.Containers &^ own)
	if others == 0 {
		return Prior{}
	}
	return Prior{
		Image: image, Containers: others,
		Young: period.Evidence(l.Hours * float64(period.Hour)),
	}
}
