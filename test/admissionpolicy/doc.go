// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionpolicy compares the policies of hack/mapsample with the webhook on a real API server.
package admissionpolicy
