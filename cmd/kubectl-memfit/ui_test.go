// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// serves is `ui` as somebody who may get and list.
func (c server) serves(t *testing.T) {
	t.Helper()
	for want, args := range map[string][]string{
		"you may not list memoryrecommendations.memfit.dev in namespace shop": {"nobody", "-n", "shop"},
		"give what a GiB costs a month":                                       {"reader", "--price-per-gib-month", "NaN"},
		`invalid argument "65536"`:                                            {"reader", "--port", "65536"},
	} {
		out, errs, code := c.run(args[0], append([]string{"ui"}, args[1:]...)...)
		if code != exitFailed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out sofar
	cmd := root()
	cmd.SetArgs([]string{"ui", "-n", "shop", "--kubeconfig", c.kubeconfig, "--as", "reader", "--currency", "EUR",
		"--price-per-gib-month", "3"})
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	address := strings.TrimSpace(out.within(t, "\n"))

	status, page := fetched(t, address)
	report, _, _ := c.run("reader", "report", "-n", "shop", "--currency", "EUR", "--price-per-gib-month", "3")
	if status != http.StatusOK || !strings.Contains(page, "EUR a month") || !strings.Contains(page, "Read again every") ||
		!strings.Contains(page, "<td>231Mi</td>") || articles(page) == "" || articles(page) != articles(report) {
		t.Errorf("%s: %d, want what report has:\n%s\nand not\n%s", address, status, articles(report), page)
	}
	host := strings.SplitAfter(strings.TrimPrefix(address, "http://"), "/")[0]
	if status, page := fetched(t, "http://"+host); status != http.StatusForbidden || strings.Contains(page, "shop") {
		t.Errorf("without the token: %d, %s", status, page)
	}
	_, port, err := net.SplitHostPort(strings.TrimSuffix(host, "/"))
	if err != nil || !strings.HasPrefix(host, "127.0.0.1:") {
		t.Fatalf("served on %s: %v", host, err)
	}
	if _, errs, code := c.run("reader", "ui", "--port", port); code != exitFailed ||
		!strings.Contains(errs, "choose another --port") {
		t.Errorf("a port that is taken: exit %d, %q", code, errs)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped: %v", err)
	}
	if conn, err := net.Dial("tcp", strings.TrimSuffix(host, "/")); err == nil {
		t.Errorf("still listening on %s", conn.RemoteAddr())
	}
}

func fetched(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// articles are the part of a page that does not say when it was made.
func articles(page string) string {
	_, rest, _ := strings.Cut(page, "<main>")
	main, _, _ := strings.Cut(rest, "</main>")
	return main
}
