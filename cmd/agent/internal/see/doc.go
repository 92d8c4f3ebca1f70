// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package see inspects the processes of containers, one container at a time, and reports what fills their memory. It is
// the part of the agent that needs Linux capabilities; at tier Watch it is unused.
package see
