// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs memfit's operator and those of the Vertical Pod Autoscaler on a simulated cluster and prints
// the resources that each uses (`make bench-scale`, `bench-start`, `bench-admission`, `bench-hostile`). Its tests have
// the build tag e2e.
//
// etcd, kube-apiserver and the operators are real. Nodes and running pods are written to etcd as the API server would
// write them. Usage is synthetic: an HTTPS server answers /stats/summary on a loopback address per node for memfit, and
// a proxy in front of the API server answers metrics.k8s.io for VPA, with the same numbers. Each operator has its own
// proxy, which counts its requests. Everything is on the loopback interface and ends with the test.
package cluster
