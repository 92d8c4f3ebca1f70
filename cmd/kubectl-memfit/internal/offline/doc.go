// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package offline applies the webhook's own plan to the pods in manifests. It reads and returns bytes: no cluster, no
// files, no clock. Unchanged documents are returned byte for byte.
package offline
