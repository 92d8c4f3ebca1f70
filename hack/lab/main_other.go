// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

// exitUnsupported is the exit code for machines that cannot run the lab, as on Linux.
const exitUnsupported = 2

func main() {
	fmt.Fprintf(os.Stderr, "hack/lab builds images, an API server and a Kubernetes node on Linux only, not on %s. "+
		"`go test ./internal/...` needs none of them. For tests with an API server, set KUBEBUILDER_ASSETS to a folder with "+
		"etcd, kube-apiserver and kubectl, which setup-envtest of controller-runtime can download\n", runtime.GOOS)
	os.Exit(exitUnsupported)
}
