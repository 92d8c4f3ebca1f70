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

// TestPackageDocs checks that each package has exactly one package comment. godoc would join several.
func TestPackageDocs(t *testing.T) {
	dirs := goDirs(t)
	testsOnly := map[string][]string{} // packages with only tests have their comment in a test file
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
			t.Errorf("package in %s has no package comment: describe it in doc.go", dir)
		case 1:
		default:
			t.Errorf("package in %s has %d package comments, want 1: %s", dir, len(documented), strings.Join(documented, ", "))
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

// TestNoDumpingGrounds refuses vague folder names, which collect unrelated code.
func TestNoDumpingGrounds(t *testing.T) {
	vague := []string{"common", "helper", "helpers", "misc", "util", "utils"}
	reported := map[string]bool{}
	for _, f := range files(t) {
		for dir := path.Dir(f); dir != "."; dir = path.Dir(dir) {
			if slices.Contains(vague, path.Base(dir)) && !reported[dir] {
				reported[dir] = true
				t.Errorf("folder %s: rename it after its contents", dir)
			}
		}
	}
}

// TestNoPrograms refuses programs and large files: they enlarge every clone and cannot be reviewed. The largest
// handwritten file is below 100 KiB.
func TestNoPrograms(t *testing.T) {
	const most = 1 << 20
	for _, f := range files(t) {
		content := read(t, f)
		if bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("%s is a program: git rm it, and build it when needed", f)
		}
		if len(content) > most {
			t.Errorf("%s has %d bytes, at most %d are allowed: generate it when needed", f, len(content), most)
		}
	}
}

// TestNoRegistryHosts refuses names of registry hosts: they would bypass a mirror in the client's configuration. The
// names are split so that this file passes its own test.
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
				t.Errorf("%s:%d names the registry host %s: leave it to the client's configuration", f,
					1+bytes.Count(before, []byte("\n")), host)
			}
		}
	}
}

// TestOneFormatOfTimes checks that only internal/format formats times, so that users see one format.
func TestOneFormatOfTimes(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") || !shipped(f) || path.Dir(f) == "internal/format" {
			continue
		}
		if bytes.Contains(read(t, f), []byte(".UTC().Format(")) {
			t.Errorf("%s formats a time itself: use Time or TimeOfDay of internal/format", f)
		}
	}
}

// TestNobodyAsksForAVersion refuses version checks of API servers and kubelets. A version does not show disabled
// feature gates: the API server's served resources do (docs/reference/kubernetes.md).
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
				t.Errorf("%s uses %s: check what the API server serves instead", f, way)
			}
		}
	}
}

// maxColumns is the maximum length of a line of Go, in bytes.
const maxColumns = 120

// TestLinesFit checks the length of lines, except in raw strings, generator markers, linter directives and generated
// files, which cannot be broken.
func TestLinesFit(t *testing.T) {
	for _, path := range goFiles(t) {
		source := string(read(t, path))
		raw := rawStrings(source)
		for i, line := range strings.Split(source, "\n") {
			marker := strings.Contains(line, "// +kubebuilder:") || strings.Contains(line, "//nolint:") ||
				strings.HasPrefix(line, "//go:")
			if len(line) > maxColumns && !raw[i] && !marker {
				t.Errorf("%s:%d has %d columns, at most %d are allowed", path, i+1, len(line), maxColumns)
			}
		}
	}
}

// rawStrings returns the 0-based lines that contain part of a raw string.
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
