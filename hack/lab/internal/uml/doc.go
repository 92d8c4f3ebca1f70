// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package uml builds and runs a guest with cgroup v2 on a machine with cgroup v1. The guest is User-mode Linux, a Linux
// kernel that runs as an ordinary process of the machine, without KVM and at the processor's own speed.
//
// [Builder.Kernel] builds the kernel from Debian's package of kernel sources. [Builder.Seed] makes a root disk with the
// programs of a node and with imported images. Each guest starts with a copy of this disk ([Boot]). The machine and the
// guest exchange configuration, images and commands in one shared directory ([Share]).
package uml
