// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestQuantitiesCostTheAPIServerLittle checks that the API server handles every profile, accepted or refused, within
// 100 times the time of an ordinary profile. CEL parses quantities in the API server, and parsing "1e-999999999" takes
// minutes. On a busy machine, 128 quantities of 2000 digits each (256 KiB) took 24 times as long.
func TestQuantitiesCostTheAPIServerLittle(t *testing.T) {
	const (
		tries  = 7   // the fastest counts, because other load only adds time
		factor = 100 // one unbounded parse takes thousands of times as long
		many   = 32  // maximum number of containers in a profile
	)
	c := apiServer(t)
	fastest := func(spec string) (time.Duration, error) {
		best, answer := time.Hour, error(nil)
		// The timeout is for all tries, so that a stuck request is not repeated.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for i := 0; i < tries && ctx.Err() == nil; i++ {
			began := time.Now()
			_, answer = create(ctx, c, t, spec)
			best = min(best, time.Since(began))
		}
		return best, answer
	}
	shapes := map[string]func(size string) string{
		"limit":      func(size string) string { return fmt.Sprintf(`{sizing: {limit: {min: %[1]s, max: %[1]s}}}`, size) },
		"request":    func(size string) string { return fmt.Sprintf(`{sizing: {request: {min: %[1]s, max: %[1]s}}}`, size) },
		"increase":   func(size string) string { return fmt.Sprintf(`{sizing: {oom: {minIncrease: %s}}}`, size) },
		"heap":       func(size string) string { return fmt.Sprintf(`{tuning: {heapLimit: %s}}`, size) },
		"semi-space": func(size string) string { return fmt.Sprintf(`{tuning: {nodejs: {semiSpace: %s}}}`, size) },
		"reserve":    func(size string) string { return fmt.Sprintf(`{tuning: {reserve: %s}}`, size) },
		"threshold":  func(size string) string { return fmt.Sprintf(`{tuning: {trimThreshold: %s}}`, size) },
		"everywhere": func(size string) string {
			var containers []string
			for i := range many {
				containers = append(containers, fmt.Sprintf(
					`{name: c%d, limit: {min: %[2]s, max: %[2]s}, request: {min: %[2]s, max: %[2]s}, tuning: {trimThreshold: %[2]s, nodejs: {semiSpace: %[2]s}}}`, i, size))
			}
			return "{containers: [" + strings.Join(containers, ", ") + "]}"
		},
	}
	for name, spec := range shapes {
		ordinary, err := fastest(spec("1Mi"))
		if err != nil && !apierrors.IsInvalid(err) {
			t.Fatalf("%s: %v", name, err)
		}
		for what, size := range map[string]string{
			"tiny": `"1e-999999999"`, "huge": `"1e999999999"`, "huge, with a sign": `"-9E+9999999999999999"`,
			"of two digits":     `"1e-99"`,
			"as long as may be": `"99999999999999999.9E"`, "long": `"` + strings.Repeat("9", 2000) + `"`,
			"a long exponent": `"1e` + strings.Repeat("9", 2000) + `"`,
			"a long fraction": `"1.` + strings.Repeat("0", 2000) + `1Ki"`, "a number": "1e30",
			"a large number": "9223372036854775807",
		} {
			took, err := fastest(spec(size))
			if took > factor*ordinary {
				t.Fatalf("%s, %s: took %s, an ordinary profile %s", name, what, took, ordinary)
			}
			if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Errorf("%s, %s: error %v, want Invalid or BadRequest", name, what, err)
			}
			if strings.HasSuffix(size, `9999"`) && err == nil {
				t.Errorf("%s, %s: the API server accepts it", name, what)
			}
		}
		t.Logf("%s: an ordinary profile took %s", name, ordinary.Round(10*time.Microsecond))
	}
}
