// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/htmlreport"
)

var start = time.Date(2026, 11, 23, 20, 12, 3, 0, time.UTC)

// fake is a cluster that takes a while to read, and may not answer.
type fake struct {
	now     time.Time
	takes   time.Duration
	reads   int
	refuses error
}

func (f *fake) read(ctx context.Context) (*htmlreport.Input, error) {
	f.reads++
	if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
		return nil, errors.New("read without a bound of time, or for somebody who has gone")
	}
	at := f.now
	f.now = f.now.Add(f.takes)
	if f.refuses != nil {
		return nil, f.refuses
	}
	return &htmlreport.Input{Place: "namespace shop", Now: at}, nil
}

func served(t *testing.T, f *fake) *Handler {
	t.Helper()
	f.now = start
	h, err := New(t.Context(), 8642, f.read, func() time.Time { return f.now })
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, url string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, http.NoBody))
	return w
}

func page(h *Handler) string {
	return ask(h, http.MethodGet, "http://127.0.0.1:8642"+h.Path()).Body.String()
}

// scriptOf names the script of a page as a browser does that decides whether to run it.
func scriptOf(page string) string {
	_, rest, _ := strings.Cut(page, "<script>")
	text, _, _ := strings.Cut(rest, "</script>")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// TestRefusals: the page is for whoever has the whole address, and nobody else learns anything of it.
func TestRefusals(t *testing.T) {
	f := &fake{}
	h := served(t, f)
	own := "http://127.0.0.1:8642"
	for _, tc := range []struct {
		method, url string
		status      int
		says        string
	}{
		{"GET", own + h.Path(), 200, "<h1>memfit: namespace shop</h1>"},
		{"GET", own + h.Path() + "/?paused", 200, "Paused."},
		{"HEAD", own + h.Path(), 200, ""},
		{"GET", "http://localhost:8642" + h.Path(), 200, "<h1>"},
		{"GET", "http://rebound.example:8642" + h.Path(), 421, "127.0.0.1:8642 and localhost:8642"},
		{"GET", "http://127.0.0.1:8080" + h.Path(), 421, "ssh -L 8642:127.0.0.1:8642"},
		{"GET", "http://127.0.0.1" + h.Path(), 421, `the request was for "127.0.0.1"`},
		{"GET", "http://127.0.0.1.rebound.example:8642" + h.Path(), 421, "127.0.0.1:8642"},
		{"POST", own + h.Path(), 405, "use GET or HEAD"},
		{"OPTIONS", own + h.Path(), 405, "use GET or HEAD"},
		{"GET", own + "/", 403, "Open the whole address"},
		{"GET", own + "/favicon.ico", 403, "token"},
		{"GET", own + h.Path()[:len(h.Path())-1], 403, "token"},
		{"GET", own + h.Path() + "x", 403, "token"},
		{"GET", own + h.Path() + "/x", 403, "token"},
		{"GET", own + strings.ToLower(h.Path()), 403, "token"},
	} {
		w := ask(h, tc.method, tc.url)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.url, w.Code, w.Body, tc.status, tc.says)
		}
		if w.Code != 200 && (strings.Contains(w.Body.String(), "shop") || strings.Contains(w.Body.String(), h.token)) {
			t.Errorf("%s %s: %q gives the page or its token away", tc.method, tc.url, w.Body)
		}
		if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s %s: Allow is %q", tc.method, tc.url, allow)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": "default-src 'none'; script-src " + scriptOf(page(h)) + "; connect-src 'self'; " +
				"style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", tc.method, tc.url, name, got, want)
			}
		}
	}
	if f.reads != 1 {
		t.Errorf("%d reads, want the one of the start: what is refused asks the API server nothing", f.reads)
	}
	if other := served(t, &fake{}); other.token == h.token || len(h.token) < 26 {
		t.Errorf("tokens %q and %q", h.token, other.token)
	}
}

// TestPort80: browsers leave that port out of the name.
func TestPort80(t *testing.T) {
	f := &fake{now: start}
	h, err := New(t.Context(), 80, f.read, func() time.Time { return f.now })
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(h, http.MethodGet, "http://localhost"+h.Path()); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestFresh: what was read serves everybody for a while, longer where reading takes long.
func TestFresh(t *testing.T) {
	for _, tc := range []struct {
		takes, fresh time.Duration
		says         string
	}{
		{time.Second, freshFor, `content="30"`},
		{6 * time.Second, time.Minute, `content="120"`},
	} {
		f := &fake{takes: tc.takes}
		h := served(t, f)
		f.now = f.now.Add(tc.fresh - time.Second)
		if got := page(h); f.reads != 1 || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %d reads, want one, and %s in %s", tc.takes, f.reads, tc.says, got)
		}
		f.now = f.now.Add(time.Second)
		if got := page(h); f.reads != 2 || !strings.Contains(got, "As of <time>"+f.now.Add(-tc.takes).Format(time.RFC3339)) {
			t.Errorf("%s: %d reads, want two: %s", tc.takes, f.reads, got)
		}
	}
}

// TestOld: while the API server does not answer, the page stays and says so.
func TestOld(t *testing.T) {
	f := &fake{}
	h := served(t, f)
	f.refuses = errors.New("connection refused <b>")
	f.now = start.Add(2 * time.Minute)
	says := []string{
		"<title>Old: memfit: namespace shop",
		"The cluster could not be read again. Everything here is as it was 2 min before that, at 2026-11-23T20:12:03Z.",
		"Tried at <time>2026-11-23T20:14:03Z</time>: connection refused &lt;b&gt;",
	}
	for range 2 {
		got := page(h)
		for _, want := range says {
			if !strings.Contains(got, want) {
				t.Fatalf("%q is not in %s", want, got)
			}
		}
	}
	if f.reads != 2 {
		t.Errorf("%d reads: one that failed is not tried for everybody who asks", f.reads)
	}
	f.refuses, f.now = nil, f.now.Add(freshFor)
	if got := page(h); strings.Contains(got, "could not be read") || strings.Contains(got, "Old") {
		t.Errorf("it answers again: %s", got)
	}
}

// TestNothingToShow: what cannot be read at the start is an error.
func TestNothingToShow(t *testing.T) {
	f := &fake{refuses: errors.New("you may not")}
	if _, err := New(t.Context(), 8642, f.read, time.Now); !errors.Is(err, f.refuses) {
		t.Errorf("%v", err)
	}
}

// TestTogether: many who ask at once are one read, which goes on when the one who caused it has gone.
func TestTogether(t *testing.T) {
	f := &fake{}
	h := served(t, f)
	f.now = f.now.Add(time.Hour)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(gone, http.MethodGet, "http://127.0.0.1:8642"+h.Path(), http.NoBody)
			h.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), "As of <time>2026-11-23T21:12:03Z") ||
				strings.Contains(w.Body.String(), "could not be read") {
				t.Errorf("%s", w.Body)
			}
		})
	}
	all.Wait()
	if f.reads != 2 {
		t.Errorf("%d reads, want that of the start and one more", f.reads)
	}
}
