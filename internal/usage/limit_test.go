// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/memfit/memfit/internal/memory"
)

func TestLimit(t *testing.T) {
	for name, test := range map[string]struct {
		in      string
		limit   memory.Bytes
		wantErr error
	}{
		"shorter": {"1234", 5, nil},
		"equal":   {"12345", 5, nil},
		"longer":  {"123456", 5, TooLongError(5)},
		"empty":   {"", 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once": strings.NewReader(test.in), "byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
				"with the end": iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				got, err := io.ReadAll(Limit(r, test.limit))
				if !errors.Is(err, test.wantErr) || string(got) != test.in[:min(len(test.in), int(test.limit))] {
					t.Errorf("%s: %q, %v, want the first %d bytes and %v", how, got, err, test.limit, test.wantErr)
				}
			}
		})
	}
}
