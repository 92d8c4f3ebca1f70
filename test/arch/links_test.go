// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// page matches the path of a page of docs/ in comments, messages and READMEs.
	page    = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/.-]*\.md\b`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// TestLinksLeadSomewhere checks the target and the anchor of each relative link of each page.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, name := range files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(read(t, name)), ""), -1) {
			if why := broken(t, name, found[1]); why != "" {
				t.Errorf("%s links to %s: %s", name, found[1], why)
			}
		}
	}
}

// broken returns why a link has no target, or "" when it has one or leads out of the repository.
func broken(t *testing.T, from, to string) string {
	t.Helper()
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	target, anchor, _ := strings.Cut(to, "#")
	file := from
	if target != "" {
		file = path.Join(path.Dir(from), target)
	}
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		return file + " not found"
	}
	if anchor == "" || path.Ext(file) != ".md" || slices.Contains(anchors(string(read(t, file))), anchor) {
		return ""
	}
	return "no heading of " + file + " has this anchor"
}

// anchors returns GitHub's anchors for the headings of a page.
func anchors(page string) (all []string) {
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		var anchor strings.Builder
		for _, r := range strings.ToLower(strings.TrimSpace(found[1])) {
			switch {
			case r == ' ':
				anchor.WriteByte('-')
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
				anchor.WriteRune(r)
			}
		}
		all = append(all, anchor.String())
	}
	return all
}

// TestPagesThatAreNamedExist checks that each page named in a message or a comment ("see docs/x.md") exists.
func TestPagesThatAreNamedExist(t *testing.T) {
	for _, name := range files(t) {
		if !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".mk", ".sh", ".json", ""}, path.Ext(name)) ||
			name == "test/arch/links_test.go" {
			continue
		}
		for _, named := range page.FindAllString(string(read(t, name)), -1) {
			if _, err := os.Stat(filepath.Join(root, named)); err != nil {
				t.Errorf("%s names %s, which was not found", name, named)
			}
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# Memory drifts\n```\n# no heading\n```\n## `a` & b: c's\n")
	if want := []string{"memory-drifts", "a--b-cs"}; !slices.Equal(got, want) {
		t.Errorf("anchors %q, want %q", got, want)
	}
}

// TestPagesAreInTheMenu finds pages missing from the site's menu, which make site would refuse minutes later.
func TestPagesAreInTheMenu(t *testing.T) {
	const menu = "hack/site/mkdocs.yml"
	listed := string(read(t, menu))
	for _, name := range files(t) {
		page, inDocs := strings.CutPrefix(name, "docs/")
		if inDocs && path.Ext(page) == ".md" && !strings.Contains(listed, "- "+page+"\n") {
			t.Errorf("%s is missing from the site's menu: add it to nav in %s", name, menu)
		}
	}
}
