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

// navigationTimeout bounds the time of a navigation within the page, on a busy machine.
const navigationTimeout = 20 * time.Second

// measure.js measures pages; the tests run it on them.
//
//go:embed measure.js
var measure string

// report returns the address of a page that the plugin wrote.
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
	w.checkAccessibility("report")
	if n := eval[int](w, `document.querySelectorAll("figure").length`); n != 8 {
		t.Errorf("%d charts, want two of each of four containers", n)
	}
	reduced := eval[string](w, `[...document.querySelectorAll("dl div")].
		find((e) => e.textContent.startsWith("Saved so far")).innerText`)
	if !strings.Contains(reduced, "1.3Gi") || !strings.Contains(reduced, "4.30 EUR a month") {
		t.Errorf("%q: want three pods of 128Mi in place of 512Mi, and one of 800Mi in place of 1Gi", reduced)
	}
	w.checkRequests(address)
}

// checkAccessibility checks a page's layout, contrast, colors and keyboard navigation.
func (w *window) checkAccessibility(name string) {
	w.t.Helper()
	w.do(chromedp.Evaluate(measure, nil))
	for _, px := range []int64{360, 768, 1440} {
		w.setWidth(px)
		if out := eval[[]string](w, `measure.overflows()`); len(out) > 0 {
			w.t.Errorf("at %d px the page overflows: %s", px, strings.Join(out, "; "))
		}
		w.picture(fmt.Sprintf("%s-%d", name, px), true)
	}
	w.setWidth(1440)
	for _, scheme := range []string{"light", "dark"} {
		w.setColorScheme(scheme)
		if low := eval[[]string](w, `measure.lowContrast()`); len(low) > 0 {
			w.t.Errorf("%s: less contrast than 4.5:1 (text) or 3:1 (lines and marks): %s", scheme, strings.Join(low, "; "))
		}
		w.picture(name+"-"+scheme, false)
	}
	if n := eval[int](w, `measure.measured()`); n < 200 {
		w.t.Errorf("the contrast of only %d texts and lines was measured", n)
	}
	w.setColorScheme("light")
	w.checkWithoutColors(name)
	for _, px := range []int64{360, 1440} {
		w.setWidth(px)
		w.checkKeyboard()
	}
}

// checkWithoutColors checks that lines differ by dash or width, and marks by shape.
func (w *window) checkWithoutColors(name string) {
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
	drawn := eval[map[string][]string](w, `measure.drawn()`)
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
				w.t.Errorf("without colors, %q and %q have the same form: %q", one, other, ways)
			}
		}
	}
}

// focus describes the focused element.
type focus struct {
	Index   int    // among all focusable elements, in visual order; -1: none of them
	Name    string // for messages
	Visible bool   // it has an outline, within the window
}

// checkKeyboard checks that Tab reaches all usable elements in visual order, with a visible focus, and that Enter
// works.
func (w *window) checkKeyboard() {
	w.t.Helper()
	want := eval[[]string](w, `measure.usable()`)
	if len(want) < 7 {
		w.t.Fatalf("only %q can be used", want)
	}
	for i, name := range want {
		w.do(chromedp.KeyEvent(kb.Tab))
		if at := eval[focus](w, `measure.focus()`); at.Index != i || !at.Visible {
			w.t.Errorf("Tab %d leads to %+v, want %q with an outline in sight", i+1, at, name)
			return
		}
	}
	// Enter opens the focused list, and closes it.
	for _, open := range []bool{true, false} {
		w.do(chromedp.Evaluate(`document.querySelector("summary").focus()`, nil), chromedp.KeyEvent(kb.Enter))
		if got := eval[bool](w, `document.querySelector("details").open`); got != open {
			w.t.Errorf("Enter on a list: open is %t, want %t", got, open)
		}
	}
	// Enter on a workload of the table scrolls to its curves, and Tab continues there.
	w.do(chromedp.Evaluate(`document.querySelector("th a").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	w.until(`Math.abs(document.getElementById(decodeURIComponent(location.hash.slice(1))).
		getBoundingClientRect().top) < 2`, navigationTimeout)
	w.do(chromedp.KeyEvent(kb.Tab))
	if !eval[bool](w, `document.activeElement.closest("article")?.id === decodeURIComponent(location.hash.slice(1))`) {
		w.t.Errorf("Enter on a workload, then Tab: %+v", eval[focus](w, `measure.focus()`))
	}
	w.do(chromedp.Evaluate(`document.activeElement.blur(); history.replaceState(null, "", "#"); measure.begin()`, nil))
}
