// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks contains the admission webhooks: package pod applies profiles to new pods, package profile checks
// profiles, package server serves both. This directory has only the tests of all of them together, with a real API
// server.
package webhooks
