// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Source is a Debian package of kernel sources.
type Source struct {
	Package string `json:"package"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the .deb
}

// suites are the parts of Debian's archive that may have the sources, in the order of preference. The machine may run
// another Debian: the package only has source files, which an older compiler can build. Backports have the newest
// kernels as long as their Debian is supported; unstable always has one.
var suites = []string{"trixie-backports", "sid"}

// pinned is the tested version. The archive keeps a backport for some months only; choose then selects another one.
var pinned = Source{
	Package: "linux-source-7.3",
	Version: "7.3.4-1~bpo13+1",
	SHA256:  "703e369ddd4cce971452f5a593ee55df3a5c10c83caf0fa0df039633ed181ee3",
}

// oldest is the first suitable series. From it on, User-mode Linux intercepts system calls by seccomp (a program starts
// in 6 ms instead of 11 to 19) and has CONFIG_SMP, which cpusets need.
var oldest = series{7, 2}

const packagePrefix = "linux-source-"

// series is a kernel's version without its number of the fix: 7.3 for 7.3.4.
type series struct{ major, minor int }

// seriesOf parses the series in a package name: linux-source-7.3. ok is false for other names, such as linux-source,
// which is a package that depends on the newest series.
func seriesOf(pkg string) (s series, ok bool) {
	major, minor, found := strings.Cut(strings.TrimPrefix(pkg, packagePrefix), ".")
	var errMajor, errMinor error
	s.major, errMajor = strconv.Atoi(major)
	s.minor, errMinor = strconv.Atoi(minor)
	return s, found && strings.HasPrefix(pkg, packagePrefix) && errMajor == nil && errMinor == nil
}

func (s series) compare(other series) int {
	return cmp.Or(cmp.Compare(s.major, other.major), cmp.Compare(s.minor, other.minor))
}

// choose selects one of the archive's offers: the wanted version, else the newest of its series, which differs by fixes
// only, else the newest of the newest series. The string explains why it is not the wanted version, and is empty if it
// is. offers are in apt's order: the newest version of a package comes first.
func choose(want Source, offers []Source) (Source, string, error) {
	var best *Source
	var bestSeries series
	wanted, _ := seriesOf(want.Package)
	for i, offer := range offers {
		s, ok := seriesOf(offer.Package)
		switch {
		case offer.Package == want.Package && offer.Version == want.Version:
			return want, "", nil
		case !ok || s.compare(oldest) < 0:
			continue
		case best == nil, bestSeries != wanted && (s == wanted || s.compare(bestSeries) > 0):
			best, bestSeries = &offers[i], s
		}
	}
	if best == nil {
		return Source{}, "", fmt.Errorf(
			"the archive has no kernel sources of series %d.%d or later", oldest.major, oldest.minor,
		)
	}
	return *best, fmt.Sprintf("The archive no longer has %s %s, the tested version. Using %s %s instead, "+
		"with the checksum of the archive's signed index", want.Package, want.Version, best.Package, best.Version), nil
}

// parseMadison parses the output of `apt-cache madison`: one line per version, "package | version | where".
func parseMadison(out []byte) []Source {
	var offers []Source
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Split(lines.Text(), "|")
		if len(fields) < 3 || !strings.Contains(fields[2], "Packages") {
			continue // the same version as a source package
		}
		offers = append(offers, Source{Package: strings.TrimSpace(fields[0]), Version: strings.TrimSpace(fields[1])})
	}
	return offers
}

// parseSHA256 returns the checksum in the output of `apt-cache show`.
func parseSHA256(out []byte) (string, error) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if sum, ok := strings.CutPrefix(lines.Text(), "SHA256: "); ok {
			return strings.TrimSpace(sum), nil
		}
	}
	return "", errors.New("the archive's index has no SHA256 of the package")
}

// parseSite returns the site of Debian's archive from the output of `apt-get indextargets` with lines of
// "site|origin|label". The security archive has another label, and other vendors have other origins.
func parseSite(out []byte) (string, bool) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Split(lines.Text(), "|")
		if len(fields) == 3 && fields[0] != "" && fields[1] == "Debian" && fields[2] == "Debian" {
			return fields[0], true
		}
	}
	return "", false
}
