// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of a quantity from another party. [resource.ParseQuantity] computes with decimal numbers of any length:
// "1e-999999999" takes minutes, and a million digits take seconds. Within these bounds it takes microseconds.
const (
	// maxLength is twice the longest quantity of Kubernetes itself: 19 digits, a sign, nine decimals and a suffix.
	maxLength = 64
	// maxExponent is far above any quantity's: the largest is about 9e18, the smallest 1e-9.
	maxExponent = 99
)

// ParseQuantity parses text from another party like [resource.ParseQuantity], but in microseconds for any text.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := CheckQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}

// CheckQuantity returns an error for text that is too expensive to parse as a quantity. It does not check the syntax.
func CheckQuantity[T string | []byte](text T) error {
	if len(text) > maxLength {
		return fmt.Errorf("%q has %d characters, and a quantity has at most %d: write it with a suffix, for example 512Mi",
			string(text[:maxLength/2])+"...", len(text), maxLength)
	}
	if digits := exponent(text); len(digits) > len("99") {
		return fmt.Errorf("%q has the exponent %s, and a quantity has at most %d: write it with a suffix, for example 512Mi",
			string(text), digits, maxExponent)
	}
	return nil
}

// exponent returns the digits of the longest decimal exponent in the text, without sign and leading zeros; empty: none.
func exponent[T string | []byte](text T) (longest string) {
	for i := range len(text) {
		if text[i]|0x20 != 'e' {
			continue
		}
		start := i + 1
		if start < len(text) && (text[start] == '-' || text[start] == '+') {
			start++
		}
		end := start
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		if digits := strings.TrimLeft(string(text[start:end]), "0"); len(digits) > len(longest) {
			longest = digits
		}
	}
	return longest
}
