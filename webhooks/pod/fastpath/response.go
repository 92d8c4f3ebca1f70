// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// AppendResult appends what the answer for a pod says after its UID: that the pod is allowed, with a JSON patch unless
// it is empty, and with warnings.
func AppendResult(out, patch []byte, warnings []string) []byte {
	const fields = 80 // bytes of the fields that are always there
	out = append(slices.Grow(out, fields+base64.StdEncoding.EncodedLen(len(patch))), `,"allowed":true`...)
	if len(patch) > 0 {
		out = append(out, `,"patchType":"JSONPatch","patch":"`...)
		out = base64.StdEncoding.AppendEncode(out, patch)
		out = append(out, '"')
	}
	if len(warnings) > 0 {
		text, err := json.Marshal(warnings)
		if err == nil { // strings always marshal
			out = append(append(out, `,"warnings":`...), text...)
		}
	}
	return out
}

// AppendReview appends an AdmissionReview with a result that [AppendResult] made. The UID is one that [Read] found.
func AppendReview(out []byte, uid types.UID, result []byte) []byte {
	out = append(out, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"`...)
	out = append(out, uid...) // printable ASCII without quotes: Read takes no other
	out = append(out, '"')
	return append(append(out, result...), '}', '}')
}
