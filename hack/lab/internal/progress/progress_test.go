// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"testing"
	"time"
)

func TestLinesAreNumberedAndAligned(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, 11)
	r.Skip("etcd", "cached")
	r.Start("kubelet", "building").Done("built")
	want := "[ 1/11] etcd                     cached\n" +
		"[ 2/11] kubelet                  building ...\n" +
		"[ 2/11] kubelet                  built in 0s\n"
	if got := out.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[time.Duration]string{
		1234 * time.Millisecond:  "1.2s",
		72345 * time.Millisecond: "1m12s",
	} {
		if got := Round(in).String(); got != want {
			t.Errorf("Round(%v) = %s, want %s", in, got, want)
		}
	}
}
