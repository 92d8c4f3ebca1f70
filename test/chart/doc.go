// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart compares the Helm chart, charts/memfit, with the kustomize trees: for every overlay and component,
// Helm renders the same objects from equivalent values. With the tag e2e it also installs, upgrades and rolls back.
package chart
