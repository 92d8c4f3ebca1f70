// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods tracks the pods of one node: it watches the API server, maps containers to their cgroups, and keeps how
// they ended.
package pods
