// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Evaluate turns evidence into a size, or says what evidence is missing.
func Evaluate(in Input) Recommendation {
	return Recommendation{
		Decision: Hold, Confidence: memory.Low, NextLook: time.Hour,
		Summary: "Hold: no evidence yet", Reasons: []string{"no memory samples yet"},
	}
}
