// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is those programs of a Kubernetes node in one that only a node needs: it runs as whichever it is
// called, by the name of the file. They share nearly all of their packages, and together they are linked once. Every
// entry does what the main function of that name in k8s.io/kubernetes/cmd does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // the controller manager knows the time zones of CronJobs

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
		fmt.Fprintf(os.Stderr, "this program does not contain %s: call it kubelet, "+
			"kube-controller-manager or kube-scheduler\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(server()))
}

// newKubelet tells cAdvisor, which dials containerd by itself, where containerd is: without it /metrics/cadvisor has no
// series per container. Kubernetes 1.36 has a flag for it, deprecated since 2018; in 1.37 the flag is gone, and only
// its Go variable is left.
func newKubelet() *cobra.Command {
	if address := os.Getenv("CONTAINERD_ADDRESS"); address != "" { // as containerd's own ctr reads it
		if err := flag.Set("containerd", address); err != nil {
			fmt.Fprintln(os.Stderr, "telling cAdvisor where containerd is:", err)
			os.Exit(2)
		}
	}
	return kubelet.NewKubeletCommand(context.Background())
}
