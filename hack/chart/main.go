// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart generates templates of charts/memfit from config/: CRDs, rights, network policies, alerts and the
// dashboard. `make manifests` runs it in the root of the repository. Templates that depend on many values (Deployment,
// DaemonSet, certificates, webhooks) are written by hand. test/chart compares the result with the output of kustomize.
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
			return fmt.Errorf("no file matches %s, which the table in hack/chart/table.go names", row.from)
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

// replace writes a file unless it has this content already.
func replace(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// removeOthers removes generated files whose source no longer exists.
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
