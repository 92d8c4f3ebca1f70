// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles knows in which namespaces a profile enables rescues (sizing.rescue). Which pods a profile governs,
// and what it inherits, only the manager knows, and it refuses an alarm that no profile allows. Without any such
// profile no container is read for alarms.
package profiles
