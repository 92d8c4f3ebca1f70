// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl does what the main function of k8s.io/kubernetes/cmd/kubectl does.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // plugins for logging in
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// Before the command is made, because finding plugins and reading .kuberc log, too.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // a wrong level is refused when the flags are parsed
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
