// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package hotspot reads the heap of a HotSpot JVM from outside. The JVM describes itself: libjvm.so exports the tables
// gHotSpotVMStructs and gHotSpotVMTypes, made for debuggers, with the place of each field of its structures. From them
// come the range of the heap, its regions or spaces with how far each is filled, the code cache, the class space, and
// the flags that are effective. The JVM takes no part in it, and is not stopped.
package hotspot
