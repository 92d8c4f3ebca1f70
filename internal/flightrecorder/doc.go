// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package flightrecorder keeps the last minute of a container's memory, and finds OOM kills, stalls and growth towards
// the limit in it. It also decides when to read the container next and when a finding is worth a write to the API
// server. It reads no clock and performs no I/O: samples come with their time, and equal samples give equal records.
// Its data of a container is bounded, about 8 KiB.
package flightrecorder
