// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks contains the admission webhooks: package pod applies profiles to new pods, package profile validates
// profiles, package server serves both. This package has only tests, of all three with a real API server.
package webhooks
