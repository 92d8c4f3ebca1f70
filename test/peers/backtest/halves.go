// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "crypto/sha256"

// Halves splits a set by a hash of the series' names: one half to choose constants on, and one to report. Who looks at
// the second to choose a constant has no data left that tells a rule from a lucky fit.
func Halves(set Set) (tuning, reporting Set) {
	tuning.Name, reporting.Name = set.Name, set.Name
	for _, s := range set.Series {
		if coin(s.Name) {
			tuning.Series = append(tuning.Series, s)
		} else {
			reporting.Series = append(reporting.Series, s)
		}
	}
	return tuning, reporting
}

// coin is heads for about half of all names, and always the same for one. Names of a set differ in a digit or two,
// which simpler hashes do not spread.
func coin(name string) bool {
	sum := sha256.Sum256([]byte(name))
	return sum[0]%2 == 0
}
