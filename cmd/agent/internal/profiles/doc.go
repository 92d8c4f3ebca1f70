// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles knows in which namespaces a profile enables rescues (sizing.rescue). Only the manager knows which
// pods a profile governs and what it inherits; it refuses an alarm that no profile allows. Without such a profile the
// agent reads no container for alarms.
package profiles
