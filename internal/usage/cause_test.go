// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestCause(t *testing.T) {
	_, long := io.ReadAll(http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("123456")), 5))
	_, fits := io.ReadAll(http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("12345")), 5))
	if fits != nil {
		t.Errorf("an answer as long as it may be: %v", fits)
	}
	refused := errors.New("connection refused")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"too long":       {fmt.Errorf("reading: %w", long), "the response exceeds 5, the maximum that memfit reads"},
		"of a request":   {&url.Error{Op: "Get", URL: "https://10.0.0.1/", Err: refused}, "connection refused"},
		"something else": {refused, "connection refused"},
	} {
		if got := Cause(test.err).Error(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
