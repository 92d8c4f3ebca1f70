// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pictures is the folder of pictures for manual review.
const pictures = "../../dist/browser"

var (
	chromium context.Context // one browser; each test has its own window
	plugin   string          // path of kubectl-memfit
)

func TestMain(m *testing.M) { os.Exit(setUp(m)) }

func setUp(m *testing.M) int {
	dir, err := os.MkdirTemp("", "memfit-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plugin = filepath.Join(dir, "kubectl-memfit")
	build := exec.Command("go", "build", "-o", plugin, "./cmd/kubectl-memfit")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the plugin: %v\n%s", err, out)
		return 1
	}
	if err := os.MkdirAll(pictures, 0o750); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-sandbox", os.Geteuid() == 0), // Chromium refuses to run as root with it
	)
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	chromium, end = chromedp.NewContext(allocated)
	defer end()
	if err := chromedp.Run(chromium); err != nil {
		fmt.Fprintf(os.Stderr, "starting Chromium (make test-browser installs it): %v\n", err)
		return 1
	}
	return m.Run()
}

// window is one tab, with the requests and errors of its page.
type window struct {
	context.Context
	t *testing.T

	mu       sync.Mutex
	requests []string
	failures []string // errors on the console
}

func open(t *testing.T) *window {
	t.Helper()
	ctx, closed := chromedp.NewContext(chromium)
	t.Cleanup(closed)
	bounded, stop := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(stop)
	w := &window{Context: bounded, t: t}
	chromedp.ListenTarget(ctx, w.record)
	// Each window behaves as the focused one, also when others were opened later.
	w.do(network.Enable(), log.Enable(), runtime.Enable(), emulation.SetFocusEmulationEnabled(true))
	return w
}

func (w *window) record(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, e.Request.URL)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			w.failures = append(w.failures, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError {
			w.failures = append(w.failures, fmt.Sprint(e.Args))
		}
	case *runtime.EventExceptionThrown:
		w.failures = append(w.failures, e.ExceptionDetails.Error())
	}
}

// visionFilter is the prefix of Chromium's own requests when it emulates a color vision deficiency.
const visionFilter = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"><filter id="f"><feColorMatrix`

// checkRequests fails if the page requested other addresses or reported errors.
func (w *window) checkRequests(address string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.requests) == 0 {
		w.t.Error("no request was recorded: are events received?")
	}
	for _, one := range w.requests {
		if strings.HasPrefix(one, visionFilter) {
			continue
		}
		if at, _, _ := strings.Cut(strings.TrimPrefix(one, address), "#"); at != "" {
			w.t.Errorf("the page requests %s", one)
		}
	}
	for _, one := range w.failures {
		w.t.Errorf("error on the console: %s", one)
	}
}

func (w *window) do(actions ...chromedp.Action) {
	w.t.Helper()
	if err := chromedp.Run(w, actions...); err != nil {
		w.t.Fatal(err)
	}
}

// eval evaluates an expression of JavaScript on the page.
func eval[T any](w *window, expression string) T {
	w.t.Helper()
	var out T
	w.do(chromedp.Evaluate(expression, &out))
	return out
}

// setWidth sets the window's width in px. Below 500 it emulates a phone.
func (w *window) setWidth(px int64) {
	w.t.Helper()
	w.do(emulation.SetDeviceMetricsOverride(px, 900, 1, px < 500))
}

func (w *window) setColorScheme(scheme string) {
	w.t.Helper()
	feature := emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
	w.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{&feature}))
}

// picture writes a screenshot of the window; whole: of the whole page.
func (w *window) picture(name string, whole bool) {
	w.t.Helper()
	var png []byte
	w.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(whole).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// until waits for an expression to become true.
func (w *window) until(expression string, atMost time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(atMost); ; time.Sleep(200 * time.Millisecond) {
		if eval[bool](w, expression) {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("after %s this is still not true: %s", atMost, expression)
		}
	}
}
