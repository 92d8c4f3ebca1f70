// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package browser

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// settles is how long a window may take, at most, for what takes no time: a machine may be busy.
const settles = 20 * time.Second

// look.js measures pages; it is run on them and is not a part of them.
//
//go:embed look.js
var look string

// report is the address of a page that the plugin wrote.
func report(t *testing.T) string {
	t.Helper()
	c := newCluster(t)
	cmd := exec.Command(plugin, "report", "-A", "--kubeconfig", c.kubeconfig(t),
		"--price-per-gib-month", "3.20", "--currency", "EUR")
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %s", err, errs.String())
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

func TestReport(t *testing.T) {
	t.Parallel()
	w, address := open(t), report(t)
	w.do(chromedp.Navigate(address))
	w.looksWell("report")
	if n := eval[int](w, `document.querySelectorAll("figure").length`); n != 8 {
		t.Errorf("%d charts, want two of each of four containers", n)
	}
	given := eval[string](w, `[...document.querySelectorAll("dl div")].
		find((e) => e.textContent.startsWith("Saved so far")).innerText`)
	if !strings.Contains(given, "1.3Gi") || !strings.Contains(given, "4.30 EUR a month") {
		t.Errorf("%q: want three pods of 128Mi in place of 512Mi, and one of 800Mi in place of 1Gi", given)
	}
	w.clean(address)
}

// looksWell holds a page to what people need.
func (w *window) looksWell(name string) {
	w.t.Helper()
	w.do(chromedp.Evaluate(look, nil))
	for _, px := range []int64{360, 768, 1440} {
		w.wide(px)
		if out := eval[[]string](w, `look.sticksOut()`); len(out) > 0 {
			w.t.Errorf("at %d px the page scrolls sideways, or this sticks out: %s", px, strings.Join(out, "; "))
		}
		w.picture(fmt.Sprintf("%s-%d", name, px), true)
	}
	w.wide(1440)
	for _, scheme := range []string{"light", "dark"} {
		w.colors(scheme)
		if pale := eval[[]string](w, `look.pale()`); len(pale) > 0 {
			w.t.Errorf("%s: less contrast than 4.5:1 (text) or 3:1 (lines and marks): %s", scheme, strings.Join(pale, "; "))
		}
		w.picture(name+"-"+scheme, false)
	}
	if n := eval[int](w, `look.measured()`); n < 200 {
		w.t.Errorf("the contrast of only %d texts and lines was measured", n)
	}
	w.colors("light")
	w.tellable(name)
	for _, px := range []int64{360, 1440} {
		w.wide(px)
		w.keyboard()
	}
}

// tellable: without colors, lines differ by how they are drawn and marks by shape.
func (w *window) tellable(name string) {
	w.t.Helper()
	for _, kind := range []emulation.SetEmulatedVisionDeficiencyType{
		emulation.SetEmulatedVisionDeficiencyTypeProtanopia, emulation.SetEmulatedVisionDeficiencyTypeDeuteranopia,
		emulation.SetEmulatedVisionDeficiencyTypeTritanopia, emulation.SetEmulatedVisionDeficiencyTypeAchromatopsia,
	} {
		w.do(
			emulation.SetEmulatedVisionDeficiency(kind),
			chromedp.Evaluate(`document.querySelector("figure").scrollIntoView()`, nil),
		)
		w.picture(name+"-"+string(kind), false)
	}
	w.do(emulation.SetEmulatedVisionDeficiency(emulation.SetEmulatedVisionDeficiencyTypeNone))
	drawn := eval[map[string][]string](w, `look.drawn()`)
	for _, class := range []string{
		"line limit", "line request", "line limit proposed", "line request proposed",
		"mark kill", "mark stall", "mark change",
	} {
		if len(drawn[class]) != 1 {
			w.t.Errorf("%q is drawn as %q, want one way, on curves and in the legend", class, drawn[class])
		}
	}
	for one, ways := range drawn {
		for other, others := range drawn {
			if one < other && slices.Equal(ways, others) {
				w.t.Errorf("without colors, %q cannot be told from %q: %q", one, other, ways)
			}
		}
	}
}

// stop is what has the keyboard.
type stop struct {
	Index   int    // among all that can have it, in the order in which they are seen; -1: none of them
	Name    string // for people
	Visible bool   // an outline is drawn around it, within the window
}

// keyboard: Tab reaches everything that can be used, in the order in which it is seen, and shows where one is.
func (w *window) keyboard() {
	w.t.Helper()
	want := eval[[]string](w, `look.usable()`)
	if len(want) < 7 {
		w.t.Fatalf("only %q can be used", want)
	}
	for i, name := range want {
		w.do(chromedp.KeyEvent(kb.Tab))
		if at := eval[stop](w, `look.stop()`); at.Index != i || !at.Visible {
			w.t.Errorf("Tab %d leads to %+v, want %q with an outline in sight", i+1, at, name)
			return
		}
	}
	// Enter opens the list that has the keyboard, and closes it.
	for _, open := range []bool{true, false} {
		w.do(chromedp.Evaluate(`document.querySelector("summary").focus()`, nil), chromedp.KeyEvent(kb.Enter))
		if got := eval[bool](w, `document.querySelector("details").open`); got != open {
			w.t.Errorf("Enter on a list: open is %t, want %t", got, open)
		}
	}
	// And on a workload of the table leads to its curves, where the keyboard goes on.
	w.do(chromedp.Evaluate(`document.querySelector("th a").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	w.until(`Math.abs(document.getElementById(decodeURIComponent(location.hash.slice(1))).getBoundingClientRect().top) < 2`, settles)
	w.do(chromedp.KeyEvent(kb.Tab))
	if !eval[bool](w, `document.activeElement.closest("article")?.id === decodeURIComponent(location.hash.slice(1))`) {
		w.t.Errorf("Enter on a workload, then Tab: %+v", eval[stop](w, `look.stop()`))
	}
	w.do(chromedp.Evaluate(`document.activeElement.blur(); history.replaceState(null, "", "#"); look.begin()`, nil))
}
