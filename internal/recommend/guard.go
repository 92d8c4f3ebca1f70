// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

// Guard says whether a recommendation may be applied now. reason is one CamelCase word for a condition, message a sentence with numbers.
type Guard func(in GuardInput) (reason, message string, refused bool)

// Guards are asked in order; the first refusal is the one users see.
type Guards []Guard

// GuardInput is what guards look at.
type GuardInput struct {
	Recommendation Recommendation
	Current        Size
	Policy         Policy
}

// Refusal asks the guards in order. refused is false when all let the recommendation pass.
func (g Guards) Refusal(in GuardInput) (reason, message string, refused bool) {
	for _, guard := range g {
		if reason, message, refused := guard(in); refused {
			return reason, message, true
		}
	}
	return "", "", false
}
