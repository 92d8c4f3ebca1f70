// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraintindex holds what namespaces and nodes allow a new pod, ready to be read: by namespace the bounds
// of LimitRanges and ResourceQuotas on memory, and the largest node. It is kept by the handlers of informers, on every
// replica, so that a request waits for nothing. Reading takes no lock and allocates nothing, and a namespace without
// such objects costs one lookup in a map.
package constraintindex
