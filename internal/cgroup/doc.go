// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads the kernel's data about the containers of a Kubernetes node for the agent: usage, limits, kills
// and pressure, from cgroup version 1 or 2. It also maps cgroups to containers. It reads an fs.FS, for example
// os.DirFS("/sys/fs/cgroup"), never writes, and reads a bounded part of every file.
package cgroup
