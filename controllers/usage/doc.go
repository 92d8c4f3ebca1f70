// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads what governed containers use, every interval, from the nodes that host them; how many processes
// the kernel killed in containers that live on; and, once per workload, what it used before memfit saw it. All of it
// runs on the leader.
package usage
