// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package podplan applies an injection plan to a pod in tests, as the API server applies the webhook's patch.
package podplan

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/inject"
)

// Apply changes pod by the plan that was made for it. It panics if the patch does not apply.
func Apply(pod *corev1.Pod, plan inject.Plan) {
	operations := plan.Patch(pod)
	if len(operations) == 0 {
		return
	}
	text, err := json.Marshal(operations)
	var patch jsonpatch.Patch
	if err == nil {
		patch, err = jsonpatch.DecodePatch(text)
	}
	raw, podErr := json.Marshal(pod)
	if err == nil && podErr == nil {
		raw, err = patch.Apply(raw)
	}
	after := corev1.Pod{}
	if err == nil {
		err = json.Unmarshal(raw, &after)
	}
	if err != nil || podErr != nil {
		panic(fmt.Sprintf("%s does not apply: %v, %v", text, err, podErr))
	}
	pod.Annotations, pod.Spec = after.Annotations, after.Spec
}
