// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraintindex knows what namespaces and nodes allow a new pod, ready to be read: by namespace what
// LimitRanges and ResourceQuotas say about memory, and the largest node. It is kept by the handlers of informers, on
// every replica, so that a request waits for nothing. It promises that reading takes no lock and allocates nothing, and
// that a namespace without such objects costs one look into a map.
package constraintindex
