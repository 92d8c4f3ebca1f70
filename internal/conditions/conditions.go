// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions makes the conditions of a status.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/quote"
)

// maxMessage is what a condition's message may take, in bytes: as much as a screen holds. The API takes 32 KiB, but
// nobody reads that.
const maxMessage = 4096

// Kind is the type of a condition. Its methods make one whose message is cut to what a screen holds; generation and
// time come with [Settle].
type Kind string

// True makes a condition that is true.
func (k Kind) True(reason, message string) metav1.Condition {
	return k.is(metav1.ConditionTrue, reason, message)
}

// False makes a condition that is false.
func (k Kind) False(reason, message string) metav1.Condition {
	return k.is(metav1.ConditionFalse, reason, message)
}

// Unknown makes a condition of which nothing is known.
func (k Kind) Unknown(reason, message string) metav1.Condition {
	return k.is(metav1.ConditionUnknown, reason, message)
}

func (k Kind) is(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(k), Status: status, Reason: reason, Message: quote.Cut(message, maxMessage)}
}

// Settle gives conditions their generation, and the time of their last transition from what was written before.
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

// Problem is a condition with a status that needs attention.
type Problem struct {
	Type   string
	Status metav1.ConditionStatus
}

// First returns the reason of the first of the problems that all have; empty: they have none.
func First(all []metav1.Condition, problems ...Problem) string {
	for _, p := range problems {
		if c := meta.FindStatusCondition(all, p.Type); c != nil && c.Status == p.Status {
			return c.Reason
		}
	}
	return ""
}
