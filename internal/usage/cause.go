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

// Cause returns what went wrong in a request: without the method and URL that net/http puts before it, and with the
// bound where the answer went beyond that of an [http.MaxBytesReader].
func Cause(err error) error {
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("the answer is longer than %s, the most memfit reads", memory.Bytes(long.Limit))
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// FirstLine returns the first line of what a server wrote, at most 300 bytes of it.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return quote.Plain(quote.Cut(line, 300))
}
