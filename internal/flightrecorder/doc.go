// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package flightrecorder keeps the last minute of a container's memory readings, and finds OOM kills, stalls and growth
// towards the limit in them. It also decides when the agent reads the container next, and when it writes a finding to
// the API server. It reads no clock and performs no I/O: samples have their time, and equal samples give equal records.
// It keeps at most about 8 KiB for each container.
package flightrecorder
