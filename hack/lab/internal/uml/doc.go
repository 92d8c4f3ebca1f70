// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package uml makes and runs a machine with cgroup v2 on one that has version 1: User-mode Linux, a Linux kernel that
// runs as an ordinary process of the machine. It needs no KVM and runs programs at the processor's own speed.
//
// The kernel is built from Debian's package of kernel sources ([Kernel]). A root disk with the programs of a node and
// with images already imported is made once ([Seed]), and every guest starts with a copy of it ([Boot]). What the
// machine has to say to a guest it says through one shared directory ([Share]): configuration, images, commands.
package uml
