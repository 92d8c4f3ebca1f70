// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package hotspot reads the heap of a HotSpot JVM without stopping it. For debuggers, libjvm.so exports the tables
// gHotSpotVMStructs and gHotSpotVMTypes, which have the offset of each field of the JVM's structures. The reader
// follows these fields to the heap and its regions, the code cache, the class space, and the effective flags.
package hotspot
