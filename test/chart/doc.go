// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart holds the Helm chart, charts/memfit, to the kustomize tree: for every overlay and component there are
// values with which Helm renders the same objects. With the tag e2e it also installs, upgrades and rolls back on a
// cluster.
package chart
