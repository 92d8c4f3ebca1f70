// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

// commands returns the subcommands in the order in which a new user needs them.
func commands() []command {
	return []command{
		{"up", "[--crash-backoff-max 10s]",
			"build what is missing and start the node; a healthy lab is kept", runUp},
		{"status", "", "show the processes, their health and the addresses", runStatus},
		{"kubeconfig", "", "print the path of the kubeconfig of the cluster that demo and e2e use", runKubeconfig},
		{"down", "", "stop everything and clean up, also after a crash; the cache is kept", runDown},
		{"cluster-up", "", "use $KUBECONFIG, kind (KIND=1) or the lab, and print the path of its kubeconfig", runClusterUp},
		{"load", "IMAGE.tar", "import an image tar into the lab (or into kind, with KIND=1)", runLoad},
		{"image", "--binary FILE --name REF -o FILE", "build an image from one static binary without Docker", runImage},
		{"image-index", "--binary ARCH=FILE... --tag TAG -o DIR",
			"write an OCI layout with an image of one program for each processor", runImageIndex},
		{"push", "DIR REF", "send an OCI layout to a registry", runPush},
		{"digest", "IMAGE.tar", "print the digest that an image tar will have in a registry", runDigest},
		{"sbom", "--binary FILE -o FILE", "write the modules of a Go program as CycloneDX", runSBOM},
		{"node-exec", "-- COMMAND", "run a command on the node with cgroup v2, as root", runNodeExec},
		{"logs", "NAME", "print the log of a daemon", runLogs},
		{"restart", "NAME", "kill a daemon and start it again", runRestart},
		{"binaries", "[--only a,b] [--print-dir]", "build only the programs of the node into the cache", runBinaries},
		{"images", "", "build only the workload images, and import them if the lab is running", runImages},
		{"serve-forward", "", "", runServeForward},
	}
}
