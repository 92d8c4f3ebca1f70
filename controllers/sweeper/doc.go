// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package sweeper deletes records of workloads that do not exist. Whether one does is asked of the API server, not of a
// cache.
package sweeper
