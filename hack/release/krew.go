// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// archive is kubectl-memfit_OS_ARCH.tar.gz.
var archive = regexp.MustCompile(`^kubectl-memfit_([a-z]+)_([a-z0-9]+)\.tar\.gz$`)

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// krew writes the manifest that `kubectl krew install --manifest` reads, from the archives in a folder.
func krew(args []string) error {
	flags := flag.NewFlagSet("krew", flag.ContinueOnError)
	version := flags.String("version", "", "version of memfit, v0.1.0")
	archives := flags.String("archives", "", "folder with kubectl-memfit_OS_ARCH.tar.gz")
	from := flags.String("from", "", "URL of the folder that they will be downloaded from")
	out := flags.String("o", "memfit.yaml", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !strings.HasPrefix(*version, "v") {
		return fmt.Errorf("-version %q: krew asks for a v and a semantic version, like v0.1.0", *version)
	}
	files, err := filepath.Glob(filepath.Join(*archives, "kubectl-memfit_*.tar.gz"))
	if err != nil {
		return err
	}
	var platforms []platform
	for _, file := range files {
		parts := archive.FindStringSubmatch(filepath.Base(file))
		if parts == nil {
			return fmt.Errorf("%s: no name of the form kubectl-memfit_OS_ARCH.tar.gz", file)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		p := platform{
			URI:    strings.TrimSuffix(*from, "/") + "/" + filepath.Base(file),
			SHA256: hex.EncodeToString(sum[:]),
			Bin:    "kubectl-memfit",
		}
		if parts[1] == "windows" {
			p.Bin += ".exe"
		}
		p.Selector.MatchLabels = map[string]string{"os": parts[1], "arch": parts[2]}
		platforms = append(platforms, p)
	}
	if len(platforms) == 0 {
		return errors.New("no archive kubectl-memfit_OS_ARCH.tar.gz in " + *archives)
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "memfit"},
		"spec": map[string]any{
			"version":          *version,
			"homepage":         "https://github.com/memfit/memfit",
			"shortDescription": "Show where the memory of pods is and what fits",
			"description": "Explains memfit's memory recommendations and OOM kills, draws what fills the memory of a pod, " +
				"lists what\nruns in a cluster and what memory it takes, and exports sizes as patches for Git. It only reads.\n",
			"caveats":   "`kubectl memfit scan` needs nothing installed; `why` and `map` need memfit's agent.\n",
			"platforms": platforms,
		},
	})
	if err != nil {
		return err
	}
	return write(*out, manifest)
}
