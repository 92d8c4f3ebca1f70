// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"strings"

	"github.com/memfit/memfit/internal/procmem/perfdata"
)

// parsePerfData returns the start arguments and the flags of a JVM that concern memory.
func parsePerfData(b []byte) (string, error) {
	var args, flags string
	err := perfdata.Each(b, func(e perfdata.Entry) {
		switch string(e.Name) {
		case "java.rt.vmArgs":
			args = ofMemory(e.Text)
		case "java.rt.vmFlags":
			flags = ofMemory(e.Text)
		}
	})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(args + " " + flags), nil
}

// ofMemory returns the words that concern memory. Others may be secrets: -D may set a password.
func ofMemory(text []byte) string {
	var kept []string
	for word := range bytes.FieldsSeq(text) {
		if mayBeSetting(word) && len(kept) < maxWords {
			kept = append(kept, string(word))
		}
	}
	return strings.Join(kept, " ")
}
