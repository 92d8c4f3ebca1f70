// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs memfit's operator and the Vertical Pod Autoscaler's recommender side by side on one cluster of
// simulated nodes and prints what each takes: resident memory, processor time, API requests.
//
// etcd and kube-apiserver are real and its own, and so are both operators. Nodes and running pods are written into etcd
// as the API server would have written them. Usage is synthetic: one HTTPS server answers /stats/summary on a loopback
// address for every node, which is where memfit asks, and a proxy in front of the API server answers metrics.k8s.io,
// which is where VPA asks. Both report the same numbers. Each operator has a proxy of its own, which counts its
// requests. Everything is on the loopback interface and ends with the program.
//
// With --admission it measures what the webhooks of both cost, beside one that does nothing; with --hostile, what becomes
// of memfit's under attack. No pods run then.
//
// With --start it measures something else, without VPA: how long memfit takes, in a cluster of many pods, from
// its start to its first decision and to one about every workload; how far it is behind while many pods are replaced;
// and what a second replica holds, and takes to go on where the first was stopped.
package main
