// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners finds the workload a pod belongs to: Pod -> ReplicaSet -> Deployment, Job -> CronJob, any other
// controller by reference.
//
// It makes at most a few reads of a metadata-only cache per pod and needs no index. It never starts an informer for a
// kind outside [Objects] (asking a controller-runtime cache for a kind that may not be listed blocks until the
// deadline), and it ends for any owner references. It only uses the readers it is given; [Resolver.APIReader] is asked
// only where the cache lags.
package owners
