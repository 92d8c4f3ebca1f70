// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"strings"
	"testing"
)

// TestWhatTheAPIServerRefusesIsRefused: by the schema, its rules, strict decoding and the webhook for profiles. The
// plugin's test with an API server creates the same profiles there.
func TestWhatTheAPIServerRefusesIsRefused(t *testing.T) {
	for doc := range strings.SplitSeq(string(read(t, "testdata/profiles.yaml")), "---\n") {
		head, _, _ := strings.Cut(doc, "\n")
		_, want, _ := strings.Cut(head, ":")
		want = strings.TrimSpace(want)
		_, err := Inject([]byte(aPod), Options{Profiles: []byte(doc)})
		if want == "" && err != nil {
			t.Errorf("%sis refused: %v", doc, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%sis answered with %v", doc, err)
		}
	}
}
