// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package browser

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// settles is how long a window may take, at most, for what takes no time: a machine may be busy.
const settles = 20 * time.Second

// again is when the live page of a window has asked again, on a busy machine, too. The page says how often it asks:
// twenty times what reading the cluster took, and every half minute at least.
func (w *window) again() time.Duration {
	w.t.Helper()
	every := eval[float64](w, `Number(document.querySelector("[data-every]").dataset.every)`)
	if every < 30 {
		w.t.Fatalf("a live page asks every %g s", every)
	}
	return time.Duration(every)*time.Second + settles
}

// served is `kubectl memfit ui`, until the test or end ends.
func served(t *testing.T, c *cluster) (address string, end func()) {
	t.Helper()
	cmd := exec.Command(plugin, "ui", "-A", "--kubeconfig", c.kubeconfig(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), end
}

// TestUI: the live page looks well, too, and Pause keeps the keyboard where it is.
func TestUI(t *testing.T) {
	t.Parallel()
	w := open(t)
	address, _ := served(t, newCluster(t))
	w.do(chromedp.Navigate(address))
	w.looksWell("ui")
	for _, is := range []struct{ text, href string }{{"Go on", "?"}, {"Pause", "?paused"}} {
		w.do(chromedp.Evaluate(`document.querySelector("header a").focus()`, nil), chromedp.KeyEvent("\r"))
		w.until(`document.activeElement.textContent === "`+is.text+`" && document.activeElement.getAttribute("href") === "`+is.href+`"`,
			settles)
	}
	w.clean(address)
}

// TestLive: what is new comes in without taking anything from the reader, and the page stays when the command ends.
func TestLive(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	address, end := served(t, c)
	w := open(t)
	w.do(chromedp.Navigate(address))
	w.wide(1024)
	w.do(chromedp.Evaluate(`{
		window.same = true; // until the page is loaded again
		const list = document.getElementById("shop/deployment-web");
		list.querySelector("details").open = true;
		list.querySelector("summary").focus();
		scrollTo(0, scrollY + list.querySelector("summary").getBoundingClientRect().top - 300);
	}`, nil))
	w.picture("live-before", false)
	// Another workload now needs a look first: its curves move to the front, above what is being read.
	c.change(t, "cronjob-report", func(rec *v1alpha1.MemoryRecommendation) {
		rec.Status.Summary = "Increase limit 300Mi to 450Mi"
		rec.Status.Conditions = append(rec.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionMemoryStalled, Status: metav1.ConditionTrue,
		})
	})
	w.until(`document.body.textContent.includes("Increase limit 300Mi to 450Mi")`, w.again())
	w.picture("live-after", false)
	for _, must := range []struct{ not, be string }{
		{"the page was loaded again", `window.same === true`},
		{"the workload that needs a look stays behind", `document.querySelector("article").id === "shop/cronjob-report"`},
		{"its line in the table stays behind", `document.querySelector("tbody tr").dataset.key === "shop/cronjob-report"`},
		{"the list that was opened is closed", `document.getElementById("shop/deployment-web").querySelector("details").open`},
		{"another list is open", `document.querySelectorAll("details[open]").length === 1`},
		{"the keyboard is elsewhere",
			`document.activeElement === document.getElementById("shop/deployment-web").querySelector("summary")`},
		{"what was read moved away", `Math.abs(document.activeElement.getBoundingClientRect().top - 300) < 2`},
		{"there is more or less than in a new page", fresh}, // closes the list
	} {
		if !evalAsync(w, must.be) {
			t.Error(must.not)
		}
	}
	w.clean(address)

	end()
	w.until(`!document.getElementById("lost").hidden`, w.again())
	if text := eval[string](w, `document.getElementById("lost").textContent`); !strings.Contains(text, "does not answer since 2") {
		t.Errorf("the command has ended: %q", text)
	}
	w.do(chromedp.Evaluate(`scrollTo(0, 0)`, nil))
	w.picture("live-ended", false)
}

// fresh: what changes have made of the page is what a browser makes of the newest one.
const fresh = `fetch(location.href).then((a) => a.text()).then((text) => {
	const page = new DOMParser().parseFromString(text, "text/html");
	document.querySelectorAll("details").forEach((d) => d.removeAttribute("open"));
	return ["header", "main"].every((p) => document.querySelector(p).outerHTML === page.querySelector(p).outerHTML);
})`

// TestWithoutScripts: where none may run, the page is loaded again as a whole.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	address, _ := served(t, newCluster(t))
	w := open(t)
	w.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(address))
	atMost := w.again()
	for end := time.Now().Add(atMost); w.asked() < 2; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("it was loaded once in %s", atMost)
		}
	}
	w.clean(address)
}

// TestToken: without it, or with another one, nothing is shown, and nothing else is told.
func TestToken(t *testing.T) {
	t.Parallel()
	address, _ := served(t, newCluster(t))
	token := address[strings.LastIndex(address, "/")+1:]
	for name, path := range map[string]string{
		"none": "", "a wrong one": "AAAAAAAAAAAAAAAAAAAAAAAAAA", "a part": token[:len(token)-1],
	} {
		w := open(t)
		response, err := chromedp.RunResponse(w, chromedp.Navigate(strings.TrimSuffix(address, token)+path))
		if err != nil {
			t.Fatal(err)
		}
		text := eval[string](w, `document.documentElement.textContent`)
		if response.Status != http.StatusForbidden || !strings.Contains(text, "Open the whole address") ||
			strings.Contains(text, "shop") || strings.Contains(text, token) {
			t.Errorf("%s: %d, %q", name, response.Status, text)
		}
	}
}
