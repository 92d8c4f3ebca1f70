// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/runtimes"
)

// Size is a memory request and limit to set before settings are derived. 0 leaves the pod's own value.
type Size struct{ Request, Limit memory.Bytes }

// Input is what a plan is made from. Nothing in it is changed.
type Input struct {
	Pod     *corev1.Pod
	Profile *profile.Named
	// Sizes are recommended sizes by container name, for sizing modes that size new pods. Nil: none.
	Sizes map[string]Size
}

// Plan is what memfit would set on a pod, and what it leaves alone, each with the reason.
type Plan struct{}

// MakePlan decides what to set on in.Pod. It never panics and changes nothing. A nil pod or profile gives an empty plan.
func MakePlan(_ Input) Plan { return Plan{} }

// Apply writes the plan into pod, which must be the pod it was made for, or a copy. Applying twice equals applying once.
func (p Plan) Apply(_ *corev1.Pod) {}

// Changes reports whether Apply would change the pod it was made for.
func (p Plan) Changes() bool { return false }

// Warnings are what the person who creates the pod should read now; at most a few short sentences, often none.
func (p Plan) Warnings() []string { return nil }

// Settings is container -> what is set, for status: "GOMEMLIMIT=483183820 (90 % of 512Mi)".
func (p Plan) Settings() map[string][]string { return nil }

// RuntimeOf says what memfit takes the container to run and how it knows: "Node.js 20 (declared by the profile)".
func (p Plan) RuntimeOf(_ string) string { return "" }

// Advice is what the profile's owner may try in that container, each with why memfit does not do it unasked.
func (p Plan) Advice(_ string) []string { return nil }

// Growth is what the container's runtime does with its limit, given the settings in this plan.
func (p Plan) Growth(_ string) runtimes.Growth { return runtimes.Growth{} }
