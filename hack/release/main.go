// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes those files of a release that are neither programs nor manifests of their own: krew's
// manifest of the plugin, and the bundle for the Operator Lifecycle Manager. Equal input gives equal files: no times,
// no names of machines.
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
		return errors.New("usage: release krew|bundle FLAGS")
	}
	switch args[0] {
	case "krew":
		return krew(args[1:])
	case "bundle":
		return bundle(args[1:])
	default:
		return fmt.Errorf("unknown command %q: use krew or bundle", args[0])
	}
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
