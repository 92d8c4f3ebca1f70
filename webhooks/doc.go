// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks is the admission edge: package pod gives new pods what their profile says, package profile tells
// authors of profiles what they will not get, package server serves both. Here are only the tests of all of them
// together, before a real API server.
package webhooks
