// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes runs as kubelet, kube-controller-manager or kube-scheduler, by the name of its file. One binary is
// linked faster than three that share nearly all packages. Each entry does what the main function of that name in
// k8s.io/kubernetes/cmd does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info

	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	servers := map[string]func() *cobra.Command{
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 newKubelet,
	}
	name := filepath.Base(os.Args[0])
	server, known := servers[name]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown program %s: the name of this file must be kubelet, "+
			"kube-controller-manager or kube-scheduler\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(server()))
}

// newKubelet returns the kubelet's command. It sets the address of containerd for cAdvisor, which connects to
// containerd itself: otherwise /metrics/cadvisor has no series per container. Kubernetes 1.36 has a deprecated flag for
// the address, 1.37 only the flag's Go variable.
func newKubelet() *cobra.Command {
	if address := os.Getenv("CONTAINERD_ADDRESS"); address != "" { // ctr of containerd reads the same variable
		if err := flag.Set("containerd", address); err != nil {
			fmt.Fprintln(os.Stderr, "setting the address of containerd for cAdvisor:", err)
			os.Exit(2)
		}
	}
	return kubelet.NewKubeletCommand(context.Background())
}
