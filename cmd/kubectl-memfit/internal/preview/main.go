// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command preview shows what memfit does, without a cluster. It prints the webhook's settings for the workloads of
// hack/demo and the manager's decisions about a recorded process, with reasons, and writes the page of `kubectl memfit
// report` about that process.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/offline"
)

func main() {
	manifests := flag.String("manifests", "hack/demo/manifests", "the folder with the workloads and their profiles")
	recording := flag.String("recording", "test/recordings/node-leak-3.csv.gz", "the recording to replay (one replica)")
	page := flag.String("o", "dist/preview.html", "the report to write")
	flag.Parse()
	if err := run(os.Stdout, *manifests, *recording, *page); err != nil {
		fmt.Fprintln(os.Stderr, "preview:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, manifests, recording, page string) error {
	fmt.Fprintf(w, "\n=== What the webhook would set on the Deployments of %s, and why\n\n", manifests)
	if err := settings(w, manifests); err != nil {
		return err
	}
	fmt.Fprint(w, "\nLearn: each runtime gets its own settings, computed from the container's limit.\n")
	fmt.Fprintf(w, "\n=== What memfit decides about a recorded process (%s, half a day in two seconds)\n\n", recording)
	if err := replay(w, manifests, recording, page); err != nil {
		return fmt.Errorf("replaying %s: %w", recording, err)
	}
	fmt.Fprintf(w, "\nThe curve with limit, kills and recommendation: %s (open it in a browser)\n", page)
	return nil
}

// optIn is the text of a manifest after which settings adds an annotation, as `kubectl annotate` does in the demo.
const optIn = "metadata:\n  name: bursts\n"

// settings prints the changes of the Deployments and their reasons.
func settings(w io.Writer, dir string) error {
	var all strings.Builder
	for _, name := range []string{"profiles.yaml", "bursts.yaml", "others.yaml"} {
		text, err := fs.ReadFile(os.DirFS(dir), name)
		if err != nil {
			return fmt.Errorf("reading the manifests: %w", err)
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	optedIn := strings.Replace(all.String(), optIn, optIn+"  annotations: {memfit.dev/profile: nodejs}\n", 1)
	result, err := offline.Inject([]byte(optedIn), offline.Options{Namespace: "memfit-demo"})
	if err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	for _, note := range append(result.Notes, result.Problems...) {
		fmt.Fprintln(w, "  "+note)
	}
	fmt.Fprintf(w, "\n  %d Deployments change. To see the changes of your own manifests:\n"+
		"  kubectl memfit inject -f FILE --profile PROFILE -o diff\n", result.Changed)
	return nil
}
