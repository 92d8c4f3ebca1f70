// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads what the kernel counts and enforces for the containers of a Kubernetes node: usage, limits,
// kills and pressure, from cgroup version 1 or 2, and which cgroup belongs to which container. It reads an fs.FS that
// the caller opened, for example os.DirFS("/sys/fs/cgroup"), never writes, and takes a bounded part of every file.
package cgroup
