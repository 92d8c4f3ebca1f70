// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	want := Source{Package: "linux-source-7.3", Version: "7.3.4-1", SHA256: "sum"}
	offer := func(pkg, version string) Source { return Source{Package: pkg, Version: version} }
	meta := offer("linux-source", "7.9.1-1")
	for name, tc := range map[string]struct {
		offers    []Source
		want      Source
		wantNote  bool
		wantError bool
	}{
		"the pinned one, though there are newer ones": {
			offers: []Source{offer("linux-source-7.4", "7.4.1-1"), offer("linux-source-7.3", "7.3.9-1"), want}, want: want,
		},
		"a newer one of its series before a newer series": {
			offers: []Source{
				meta, offer("linux-source-7.4", "7.4.1-1"), offer("linux-source-7.3", "7.3.9-1"),
				offer("linux-source-7.3", "7.3.8-1"), offer("linux-source-7.2", "7.2.12-1"),
			},
			want: offer("linux-source-7.3", "7.3.9-1"), wantNote: true,
		},
		"the newest series if the archive lacks its own": {
			offers: []Source{
				offer("linux-source-7.9", "7.9.1-1"), meta, offer("linux-source-7.10", "7.10.2-1"),
				offer("linux-source-7.10", "7.10.1-1"), offer("linux-source-7.2", "7.2.12-1"),
			},
			want: offer("linux-source-7.10", "7.10.2-1"), wantNote: true,
		},
		"none that is new enough": {
			offers:    []Source{meta, offer("linux-source-6.12", "6.12.9-1"), offer("linux-source-7.1", "7.1.2-1")},
			wantError: true,
		},
		"nothing": {wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, note, err := choose(want, tc.offers)
			if (err != nil) != tc.wantError || got != tc.want || (note != "") != tc.wantNote {
				t.Errorf("got %+v, %q, %v", got, note, err)
			}
			if tc.wantNote && (!strings.Contains(note, want.Version) || !strings.Contains(note, tc.want.Version)) {
				t.Errorf("%q does not name both versions", note)
			}
		})
	}
}

func TestThePinIsComplete(t *testing.T) {
	s, ok := seriesOf(pinned.Package)
	if !ok || s.compare(oldest) < 0 || len(pinned.SHA256) != 64 || pinned.Version == "" {
		t.Errorf("%+v", pinned)
	}
}

func TestAnswersOfApt(t *testing.T) {
	const madison = `linux-source-7.3 | 7.3.4-1~bpo13+1 | mirror:/debian trixie-backports/main amd64 Packages
linux-source | 7.3.4-1~bpo13+1 | mirror:/debian trixie-backports/main amd64 Packages
linux | 7.3.4-1~bpo13+1 | mirror:/debian trixie-backports/main Sources
`
	want := []Source{
		{Package: "linux-source-7.3", Version: "7.3.4-1~bpo13+1"}, {Package: "linux-source", Version: "7.3.4-1~bpo13+1"},
	}
	if got := parseMadison([]byte(madison)); !slices.Equal(got, want) {
		t.Errorf("madison: %+v", got)
	}
	if got, err := parseSHA256([]byte("Package: x\nSize: 3\nSHA256: abc\nDescription: y\n")); got != "abc" || err != nil {
		t.Errorf("show: %q, %v", got, err)
	}
	if got, err := parseSHA256([]byte("Package: x\n")); err == nil {
		t.Errorf("an index without a checksum: %q", got)
	}
	const targets = `mirror:/security|Debian|Debian-Security
mirror:/node|. nodistro|. nodistro
mirror:/debian|Debian|Debian
`
	if got, ok := parseSite([]byte(targets)); got != "mirror:/debian" || !ok {
		t.Errorf("indextargets: %q, %v", got, ok)
	}
	if got, ok := parseSite([]byte("mirror:/ubuntu|Ubuntu|Ubuntu\n")); ok {
		t.Errorf("another vendor: %q", got)
	}
}

func TestLostOptions(t *testing.T) {
	const requested = "# CONFIG_C is a comment\nCONFIG_A=y\nCONFIG_B=8\nCONFIG_AB=y\n"
	const got = "CONFIG_A=y\nCONFIG_B=9\n# CONFIG_AB is not set\n"
	if lost := lostOptions([]byte(requested), []byte(got)); !slices.Equal(lost, []string{"CONFIG_B=8", "CONFIG_AB=y"}) {
		t.Errorf("lost %q", lost)
	}
	if lost := lostOptions(config, config); len(lost) > 0 {
		t.Errorf("the configuration lacks its own %q", lost)
	}
}

func TestVariants(t *testing.T) {
	for list, want := range map[string]Variants{
		"":                    {},
		"swap":                {Swap: true},
		" memory-qos, swap ,": {MemoryQoS: true, Swap: true},
		"single-process-oom-kill,swap,memory-qos": {SingleProcessOOMKill: true, Swap: true, MemoryQoS: true},
	} {
		got, err := ParseVariants(list)
		if err != nil || got != want {
			t.Errorf("ParseVariants(%q) = %+v, %v", list, got, err)
		}
		if again, err := ParseVariants(got.String()); err != nil || again != got {
			t.Errorf("%q is parsed as %+v, %v", got.String(), again, err)
		}
	}
	if _, err := ParseVariants("swap,swop"); err == nil || !strings.Contains(err.Error(), "memory-qos") {
		t.Errorf("an unknown name: %v", err)
	}
}
