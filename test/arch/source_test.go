// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPackageDocs: a package states what it promises, once. Two docs drift apart, and godoc glues them together.
func TestPackageDocs(t *testing.T) {
	dirs := goDirs(t)
	testsOnly := map[string][]string{} // such as an end-to-end suite: it says so in a test file
	for _, f := range goFiles(t) {
		if dir := path.Dir(f); dirs[dir] == nil {
			testsOnly[dir] = append(testsOnly[dir], f)
		}
	}
	maps.Copy(dirs, testsOnly)
	for dir, sources := range dirs {
		var documented []string
		for _, f := range sources {
			parsed, err := parser.ParseFile(token.NewFileSet(), f, read(t, f), parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			if parsed.Doc != nil && strings.TrimSpace(parsed.Doc.Text()) != "" {
				documented = append(documented, f)
			}
		}
		switch len(documented) {
		case 0:
			t.Errorf("package in %s has no package comment: say in doc.go what it promises", dir)
		case 1:
		default:
			t.Errorf("package in %s has %d package comments, want one: %s", dir, len(documented), strings.Join(documented, ", "))
		}
	}
}

func TestHeaders(t *testing.T) {
	header := bytes.TrimSpace(read(t, "hack/boilerplate.go.txt"))
	for _, f := range goFiles(t) {
		content := read(t, f)
		if bytes.HasPrefix(content, []byte("//go:build ")) { // a build constraint may come first
			_, content, _ = bytes.Cut(content, []byte("\n"))
		}
		if !bytes.HasPrefix(bytes.TrimSpace(content), append(slices.Clip(header), '\n')) {
			t.Errorf("%s does not start with the header of hack/boilerplate.go.txt", f)
		}
	}
}

// TestNoDumpingGrounds: a folder whose name means nothing collects everything.
func TestNoDumpingGrounds(t *testing.T) {
	vague := []string{"common", "helper", "helpers", "misc", "util", "utils"}
	reported := map[string]bool{}
	for _, f := range files(t) {
		for dir := path.Dir(f); dir != "."; dir = path.Dir(dir) {
			if slices.Contains(vague, path.Base(dir)) && !reported[dir] {
				reported[dir] = true
				t.Errorf("folder %s: name it after what its contents promise", dir)
			}
		}
	}
}

// TestNoPrograms: a program that a user built and added by mistake makes every clone larger for ever, and no one can
// review it (25 MiB of an agent lay in the tree for a day). The largest file that people wrote is below 100 KiB.
func TestNoPrograms(t *testing.T) {
	const most = 1 << 20
	for _, f := range files(t) {
		content := read(t, f)
		if bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("%s is a program: git rm it, and build it where it is needed", f)
		}
		if len(content) > most {
			t.Errorf("%s has %d bytes, the most is %d: make it when it is needed instead", f, len(content), most)
		}
	}
}

// TestNoRegistryHosts: the ordinary clients know where their registries are, and whoever uses a mirror has told them.
// A host written down here would go round that. The names are split so that this file passes its own test.
func TestNoRegistryHosts(t *testing.T) {
	hosts := []string{
		"proxy.golang" + ".org", "sum.golang" + ".org", "index.golang" + ".org", "goproxy" + ".io", "goproxy" + ".cn",
		"registry.npmjs" + ".org", "registry.yarnpkg" + ".com", "pypi" + ".org", "pythonhosted" + ".org", "crates" + ".io",
		"repo1.maven" + ".org", "repo.maven.apache" + ".org", "search.maven" + ".org", "rubygems" + ".org",
		"deb.debian" + ".org", "security.debian" + ".org", "ftp.debian" + ".org", "snapshot.debian" + ".org",
		"gcr" + ".io", "ghcr" + ".io", "quay" + ".io", "docker" + ".io", "registry.k8s" + ".io", "mcr.microsoft" + ".com",
	}
	for _, f := range files(t) {
		content := bytes.ToLower(read(t, f))
		for _, host := range hosts {
			if before, _, found := bytes.Cut(content, []byte(host)); found {
				t.Errorf(
					"%s:%d names the registry host %s: leave it to the client's own settings", f, 1+bytes.Count(before, []byte("\n")),
					host,
				)
			}
		}
	}
}

// TestOneFormatOfTimes: two ways to write a point in time look like two kinds of times to the one who reads both.
func TestOneFormatOfTimes(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") || !shipped(f) || path.Dir(f) == "internal/format" {
			continue
		}
		if bytes.Contains(read(t, f), []byte(".UTC().Format(")) {
			t.Errorf("%s writes a time in a format of its own: internal/format has Time and TimeOfDay", f)
		}
	}
}

// TestNobodyAsksForAVersion: what an API server can do shows in what it serves. A version does not show gates that
// are turned off, nor the nodes (docs/reference/kubernetes.md).
func TestNobodyAsksForAVersion(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") || !shipped(f) {
			continue
		}
		for _, way := range []string{
			"ServerVersion(", "ServerVersionWithContext(", "apimachinery/pkg/util/version\"", "apimachinery/pkg/version\"",
			".KubeletVersion",
		} {
			if bytes.Contains(read(t, f), []byte(way)) {
				t.Errorf("%s uses %s: ask for what is served instead", f, way)
			}
		}
	}
}

// widest is the length of a line of Go: what fits beside another file on a screen, and into a review.
const widest = 120

// TestLinesFit: Go source is at most 120 columns wide. Left out are what cannot be broken: raw strings, markers for
// generators, reasons for a linter, and files that are generated.
func TestLinesFit(t *testing.T) {
	for _, path := range goFiles(t) {
		source := string(read(t, path))
		raw := rawStrings(source)
		for i, line := range strings.Split(source, "\n") {
			marker := strings.Contains(line, "// +kubebuilder:") || strings.Contains(line, "//nolint:") ||
				strings.HasPrefix(line, "//go:")
			if len(line) > widest && !raw[i] && !marker {
				t.Errorf("%s:%d has %d columns, at most %d fit", path, i+1, len(line), widest)
			}
		}
	}
}

// rawStrings are the lines that hold a part of a raw string.
func rawStrings(source string) map[int]bool {
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	s.Init(file, []byte(source), nil, 0)
	lines := map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind == token.STRING && literal[0] == '`' {
			for i := range strings.Count(literal, "\n") + 1 {
				lines[file.Line(pos)-1+i] = true
			}
		}
	}
}
