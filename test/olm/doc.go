// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm holds the bundle that a release has for the Operator Lifecycle Manager to the validation of the Operator
// Framework. A module of its own, for its packages.
package olm
