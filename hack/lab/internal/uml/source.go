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

// suites are the parts of Debian's archive that the sources are looked for in, the first one that serves any. The
// machine need not run them: the package is an archive of files, and the compiler of an older Debian builds it.
// Backports have the newest kernels as long as the archive has that Debian; unstable always has one.
var suites = []string{"trixie-backports", "sid"}

// pinned is what was built and tested. The archive keeps a backport for some months only; choose reports what is taken
// when it is gone.
var pinned = Source{
	Package: "linux-source-7.3",
	Version: "7.3.4-1~bpo13+1",
	SHA256:  "703e369ddd4cce971452f5a593ee55df3a5c10c83caf0fa0df039633ed181ee3",
}

// oldest is the first series that is good enough: system calls of the guest are caught by seccomp (starting a program
// takes 6 ms; 11 to 19 before), and CONFIG_SMP, which cpusets need, exists on User-mode Linux.
var oldest = series{7, 2}

const packagePrefix = "linux-source-"

// series is the version of a kernel that does not change as long as it is maintained.
type series struct{ major, minor int }

// seriesOf reads the name of a package: linux-source-7.3. The package linux-source, which stands for whatever is
// newest, has none.
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

// choose picks from what the archive offers: the pinned version; else the newest one of its series, which differs by
// fixes only; else the newest of the newest series. Its second result reports why it is not the pinned one. offers are
// as apt lists them: the newest version of a package comes first.
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
	return *best, fmt.Sprintf("The archive has no %s %s any more, which is what was tested. Taking %s %s instead, "+
		"with the checksum of the archive's signed index", want.Package, want.Version, best.Package, best.Version), nil
}

// parseMadison reads `apt-cache madison`: one line per version, "package | version | where".
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

// parseSHA256 reads `apt-cache show`.
func parseSHA256(out []byte) (string, error) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if sum, ok := strings.CutPrefix(lines.Text(), "SHA256: "); ok {
			return strings.TrimSpace(sum), nil
		}
	}
	return "", errors.New("the archive's index has no SHA256 for it")
}

// parseSite reads `apt-get indextargets` in our format, "site|origin|label", and returns where the machine gets Debian
// from. The security archive has another label, and other vendors another origin.
func parseSite(out []byte) (string, bool) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Split(lines.Text(), "|")
		if len(fields) == 3 && fields[0] != "" && fields[1] == "Debian" && fields[2] == "Debian" {
			return fields[0], true
		}
	}
	return "", false
}
