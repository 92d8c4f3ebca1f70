// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions builds the conditions of a status, with bounded messages and stable transition times.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/quote"
)

// maxMessage bounds a condition's message, in bytes, to about one screen. The API allows 32 KiB.
const maxMessage = 4096

// Kind is the type of a condition. Its methods return a condition of that type and truncate the message to maxMessage
// bytes. [Settle] sets the generation and the transition time.
type Kind string

// True returns a condition that is true.
func (k Kind) True(reason, message string) metav1.Condition {
	return k.build(metav1.ConditionTrue, reason, message)
}

// False returns a condition that is false.
func (k Kind) False(reason, message string) metav1.Condition {
	return k.build(metav1.ConditionFalse, reason, message)
}

// Unknown returns a condition that is unknown.
func (k Kind) Unknown(reason, message string) metav1.Condition {
	return k.build(metav1.ConditionUnknown, reason, message)
}

func (k Kind) build(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(k), Status: status, Reason: reason, Message: quote.Cut(message, maxMessage)}
}

// Settle sets the generation of conditions, and their transition times: the previous time while the status is the same,
// otherwise now. before holds the previously written conditions.
func Settle(conditions, before []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now).Rfc3339Copy()
		for j := range before {
			if before[j].Type == c.Type && before[j].Status == c.Status {
				c.LastTransitionTime = before[j].LastTransitionTime
			}
		}
	}
	return conditions
}

// Problem is a type of condition, and the status of it that needs attention.
type Problem struct {
	Type   string
	Status metav1.ConditionStatus
}

// First returns the reason of the condition in all that has the first of the problems; empty: all has none of them.
func First(all []metav1.Condition, problems ...Problem) string {
	for _, p := range problems {
		if c := meta.FindStatusCondition(all, p.Type); c != nil && c.Status == p.Status {
			return c.Reason
		}
	}
	return ""
}
