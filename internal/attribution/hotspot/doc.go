// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package hotspot reads the heap of a HotSpot JVM from outside. libjvm.so exports the tables gHotSpotVMStructs and
// gHotSpotVMTypes for debuggers, with the offset of each field of its structures. They lead to the range of the heap,
// its regions or spaces and their fill, the code cache, the class space, and the effective flags. The JVM is not
// stopped.
package hotspot
