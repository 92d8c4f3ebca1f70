// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/pagemap"
	"github.com/memfit/memfit/test/golden"
)

func web(t *testing.T) *v1alpha1.MemorySnapshot {
	t.Helper()
	text, err := os.ReadFile("testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s v1alpha1.MemorySnapshot
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func drawn(t *testing.T, container string) *Pod {
	t.Helper()
	p, err := New(web(t), container)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestText(t *testing.T) {
	var plain, colored, pages bytes.Buffer
	p := drawn(t, "")
	if err := errors.Join(
		p.WriteText(&plain, false, false), p.WriteText(&colored, true, false), p.WriteText(&pages, false, true),
	); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "web.txt", plain.String())
	golden.Check(t, "web-color.txt", colored.String())
	golden.Check(t, "web-pages.txt", pages.String())
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("an escape sequence that the snapshot brought is on the terminal")
	}
	if got := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(colored.String(), ""); got != plain.String() {
		t.Errorf("without its colors the picture is another one:\n%s", cmp.Diff(plain.String(), got))
	}
}

// TestPartsAddUp: a bar is as long as what it stands for, whatever the width.
func TestPartsAddUp(t *testing.T) {
	c := drawn(t, "app").Containers[0]
	if c.total() != 488*memory.MiB {
		t.Errorf("the parts of a container that is charged 488Mi are %s", c.total())
	}
	for width := 1; width < 300; width++ {
		live, free := c.cells(width)
		sum := 0
		for i := range live {
			sum += live[i] + free[i]
			exact := float64(c.Parts[i].Size) * float64(width) / float64(c.Limit)
			if off := float64(live[i]+free[i]) - exact; off > 1 || off < -1 || live[i] < 0 || free[i] < 0 {
				t.Errorf("%s has %d and %d of %d cells, want some %.1f", c.Parts[i].Name, live[i], free[i], width, exact)
			}
		}
		if want := int(float64(c.total())*float64(width)/float64(c.Limit) + 0.5); sum != want {
			t.Errorf("the bar has %d of %d cells, want %d", sum, width, want)
		}
	}
}

func TestOneContainer(t *testing.T) {
	if p := drawn(t, "proxy"); len(p.Containers) != 1 || !strings.HasPrefix(p.Containers[0].Heading, "proxy") {
		t.Errorf("drawn are %v", p.Containers)
	}
	_, err := New(web(t), "nope")
	if want := `no container "nope": name one of app, proxy, over`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// texts reads XML to its end and returns what is written in it.
func texts(t *testing.T, document []byte) []string {
	t.Helper()
	var found []string
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v", err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			found = append(found, string(text))
		}
	}
}

func TestSVG(t *testing.T) {
	var out bytes.Buffer
	if err := drawn(t, "").WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "web.svg", out.String())
	written := texts(t, out.Bytes())
	for _, want := range []string{
		"V8 heap", "301Mi", "38Mi resident and free (hatched)", "limit 512Mi", "unexplained",
		"glibc arenas: 61Mi resident and free",
		"glibc arenas, 64Mi: 48Mi resident, 31Mi of that free (process 1, a block is 64Ki)",
	} {
		if !slices.Contains(written, want) {
			t.Errorf("%q does not stand in the picture", want)
		}
	}
	if strings.Contains(out.String(), "<script") || strings.Contains(out.String(), "href") {
		t.Error("the picture loads or runs something")
	}
}

func TestNamesAreTextInThePicture(t *testing.T) {
	s := web(t)
	s.Status.Containers[0].Memory.Parts[0].Name = `<script>alert("&")</script>`
	p, err := New(s, "app")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<script") ||
		!strings.Contains(out.String(), ">&lt;script&gt;alert(&#34;&amp;&#34;)&lt;/script&gt;</text>") {
		t.Errorf("a part's name is not text:\n%s", out.String())
	}
}

// TestRows: rows are full but the last, and nothing is lost.
func TestRows(t *testing.T) {
	runs := []pagemap.Run{
		{State: pagemap.InUse, Blocks: 7}, {State: pagemap.Absent, Blocks: 1}, {State: pagemap.Free, Blocks: 9},
	}
	var got []string
	for _, row := range rows(runs, 5) {
		got = append(got, pagemap.Text(row))
	}
	if want := []string{"L5", "L2AF2", "F5", "F2"}; !slices.Equal(got, want) {
		t.Errorf("rows are %q, want %q", got, want)
	}
}
