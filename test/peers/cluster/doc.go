// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs memfit's operator beside those of the Vertical Pod Autoscaler on a simulated cluster and prints
// what each takes (`make bench-scale`, `bench-start`, `bench-admission`, `bench-hostile`). Its tests have the build tag
// e2e.
//
// etcd and kube-apiserver are real and its own, and so are the operators. Nodes and running pods are written into etcd
// as the API server would have written them. Usage is synthetic: one HTTPS server answers /stats/summary on a loopback
// address for every node, which is where memfit asks, and a proxy in front of the API server answers metrics.k8s.io,
// which is where VPA asks. Both report the same numbers. Each operator has a proxy of its own, which counts its
// requests. Everything is on the loopback interface and ends with the test.
package cluster
