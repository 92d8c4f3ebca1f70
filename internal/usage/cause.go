// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

// Cause returns the cause of a failed request: without net/http's method and URL, and with the bound if the response
// exceeded that of an [http.MaxBytesReader].
func Cause(err error) error {
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("the response exceeds %s, the maximum that memfit reads", memory.Bytes(long.Limit))
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// FirstLine returns the first line of a server's text, at most 300 bytes.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return quote.Plain(quote.Cut(line, 300))
}
