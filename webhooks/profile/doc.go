// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile is the webhook for profiles: it tells their authors at once what the schema lets through and cannot
// be meant.
package profile
