// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package offline injects into manifests what the webhook would inject into their pods, with the webhook's own plan.
// It reads and returns bytes: no cluster, no files, no clock. Documents that it does not change come out byte for byte.
package offline
