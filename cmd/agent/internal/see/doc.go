// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package see inspects the processes of containers, one container at a time, and reports what fills them. It is the
// part of the agent that needs capabilities; at tier Watch nothing calls it.
package see
