// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package period defines the periods of evidence, and the factor by which a lab shortens them.
//
// A constant of type [Evidence] is a period of observation of a workload: hours and days of history, cool-downs, holds
// after a rollback. A constant of type [time.Duration] concerns a mechanism and is never shortened: timeouts, backoffs,
// delays of the kubelet or the API server. In production the factor is 1. With a factor of 144 a day of evidence takes
// ten minutes (--lab-compress-evidence of the manager), so that a test on a real node lowers a limit within minutes.
// Explicit periods in profiles are real time and are not shortened.
package period

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Evidence is a period of evidence, before it is shortened.
type Evidence time.Duration

// The units of evidence.
const (
	Minute = Evidence(time.Minute)
	Hour   = Evidence(time.Hour)
	Day    = 24 * Hour
)

// MaxFactor shortens an hour of evidence to ten seconds, the interval of the kubelet's measurements.
const MaxFactor = 360

// factor divides every period of evidence. It is set before anything else starts, and only read afterwards.
var factor int64 = 1

// Valid returns an error unless evidence can be compressed by f: an hour must take a whole number of seconds, at least
// ten, because histories count hours and days in seconds.
func Valid(f int) error {
	const hour = int(time.Hour / time.Second)
	if f < 1 || f > MaxFactor {
		return fmt.Errorf("invalid factor %d: it must be between 1 (not compressed) and %d", f, MaxFactor)
	}
	if hour%f != 0 {
		return fmt.Errorf("invalid factor %d: it must divide %d, for example 144", f, hour)
	}
	return nil
}

// Compress divides all periods of evidence by f, before anything else starts. It returns an error unless f is [Valid].
func Compress(f int) error {
	if err := Valid(f); err != nil {
		return err
	}
	factor = int64(f)
	return nil
}

// Factor returns the factor by which periods of evidence are divided; 1: they are not compressed.
func Factor() int { return int(factor) }

// Compressed reports whether periods of evidence are shortened.
func Compressed() bool { return factor > 1 }

// Of converts a real duration to a period of evidence, bounded to the range of Evidence: 292 years, also negative.
func Of(real time.Duration) Evidence {
	most := math.MaxInt64 / factor
	return Evidence(min(max(int64(real), -most), most) * factor)
}

// Duration returns how long the period takes in real time.
func (e Evidence) Duration() time.Duration { return e.At(int(factor)) }

// At returns how long the period takes in real time with another factor.
func (e Evidence) At(f int) time.Duration { return time.Duration(e) / time.Duration(f) }

// Hours returns the period in hours of evidence.
func (e Evidence) Hours() float64 { return time.Duration(e).Hours() }

// DayOf returns the number of full days of evidence from 1970 to t.
func DayOf(t time.Time) int64 { return t.Unix() / int64(Day.Duration()/time.Second) }

// ErrFactor is returned for a stored record whose evidence was compressed by another factor.
var ErrFactor = errors.New("evidence was compressed by another factor")
