// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes those files of a release that are neither programs nor manifests of their own: krew's manifest
// of the plugin, the bundle for the Operator Lifecycle Manager, and the statement of what was built from what. Equal
// input gives equal files: no times, no names of machines.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say krew, bundle, provenance or predicate")
	}
	switch args[0] {
	case "krew":
		return krew(args[1:])
	case "bundle":
		return bundle(args[1:])
	case "provenance":
		return provenance(args[1:])
	case "predicate":
		return predicate(args[1:])
	default:
		return fmt.Errorf("%q: say krew, bundle, provenance or predicate", args[0])
	}
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
