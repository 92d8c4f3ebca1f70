// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command apiserver does what the main function of k8s.io/kubernetes/cmd/kube-apiserver does. It is a program of its
// own because tests without a node need no other server of Kubernetes, and all of them have 500 packages more.
package main

import (
	"os"
	_ "time/tzdata" // the time zones of CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
