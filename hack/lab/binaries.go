// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/component"
	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

func runBinaries(ctx context.Context, l layout.Layout, args []string) error {
	flags := flag.NewFlagSet("binaries", flag.ContinueOnError)
	only := flags.String(
		"only", "",
		"comma-separated names of the binaries to build, for example etcd,kube-apiserver,kubectl; empty builds all",
	)
	printDir := flags.Bool("print-dir", false, "print only the directory of the binaries to stdout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	kubernetes, err := component.FindKubernetes(os.Getenv("LAB_KUBERNETES"))
	if err != nil {
		return err
	}
	selected := component.All(kubernetes)
	if *only != "" {
		var unknown []string
		if selected, unknown = component.Select(selected, strings.Split(*only, ",")); len(unknown) > 0 {
			return fmt.Errorf("unknown binaries: %s", strings.Join(unknown, ", "))
		}
	}
	dir, err := buildBinaries(ctx, l, kubernetes, selected, progress.New(os.Stderr, component.Count(selected)))
	if err != nil {
		return err
	}
	if *printDir {
		fmt.Println(dir)
	}
	return nil
}

// buildBinaries builds the binaries that the cache lacks and returns the directory to run them from.
func buildBinaries(
	ctx context.Context, l layout.Layout, kubernetes component.Kubernetes, selected []component.Component,
	report *progress.Reporter,
) (string, error) {
	modules, err := sourceDir("modules")
	if err != nil {
		return "", err
	}
	builder := component.Builder{All: component.All(kubernetes), Modules: modules, Store: l.Bin(), Report: report}
	dir, err := builder.Ensure(ctx, selected)
	if err != nil {
		return "", err
	}
	report.Total(fmt.Sprintf("%d programs are ready in %s", component.Count(selected), dir))
	return dir, nil
}

// sourceDir returns the path of a folder in hack/lab. The lab is compiled on the machine that runs it, so the compiler
// recorded where hack/lab is. $MEMFIT_LAB_SOURCE overrides this path for a moved checkout.
func sourceDir(name string) (string, error) {
	root := os.Getenv("MEMFIT_LAB_SOURCE")
	if root == "" {
		_, file, _, ok := runtime.Caller(0)
		if !ok {
			return "", errors.New("no source path in this binary: set MEMFIT_LAB_SOURCE to the folder hack/lab")
		}
		root = filepath.Dir(file)
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is missing: set MEMFIT_LAB_SOURCE to the folder hack/lab of a checkout", dir)
	} else if err != nil {
		return "", err
	}
	return dir, nil
}
