// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart writes those templates of charts/memfit that say what config/ says already: CRDs, rights, network
// policies, alerts, the dashboard. `make manifests` runs it at the top of the tree. What values reach into (the
// Deployment, the DaemonSet, certificates, webhooks) is written by hand, and test/chart holds all of it to what
// kustomize builds.
//
// `chart package -version v0.1.0 -o dist` packs the chart for a release.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

const chart = "charts/memfit"

func main() {
	run := generate
	if len(os.Args) > 1 && os.Args[1] == "package" {
		run = func() error { return pack(os.Args[2:]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func generate() error {
	written := map[string]bool{}
	for _, row := range table {
		sources, err := filepath.Glob(row.from)
		if err != nil {
			return err
		}
		if len(sources) == 0 {
			return fmt.Errorf("%s is not there: the table in hack/chart/table.go names it", row.from)
		}
		for _, source := range sources {
			if filepath.Base(source) == "kustomization.yaml" {
				continue
			}
			text, err := os.ReadFile(source)
			if err != nil {
				return err
			}
			to := filepath.Join(chart, row.to, filepath.Base(source))
			written[to] = true
			if err := replace(to, row.write(source, text)); err != nil {
				return err
			}
		}
	}
	return removeOthers(written)
}

// replace leaves a file alone that says the same already.
func replace(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// removeOthers removes what was generated once and has no source any more.
func removeOthers(written map[string]bool) error {
	old, err := filepath.Glob(filepath.Join(chart, "templates", "*", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range old {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !written[file] && bytes.HasPrefix(text, []byte(generated)) {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}
