// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners finds the workload a pod belongs to: Pod -> ReplicaSet -> Deployment, Job -> CronJob, any other
// controller by reference.
//
// It promises at most a few reads of a metadata-only cache per pod and no index, that it never starts an informer for a
// kind outside [Kinds] (asking a controller-runtime cache for a kind nobody may list blocks until the deadline), and
// that it ends whatever the owner references say. It touches nothing but the readers it is given;
// [Resolver.APIReader] is asked only where the cache lags.
package owners
