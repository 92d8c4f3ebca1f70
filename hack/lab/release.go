// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/images"
	"github.com/memfit/memfit/hack/lab/internal/layout"
)

// runImageIndex builds images of one program for several processors.
func runImageIndex(_ context.Context, _ layout.Layout, args []string) error {
	flags := flag.NewFlagSet("image-index", flag.ContinueOnError)
	var p images.Program
	binaries, labels := map[string]string{}, map[string]string{}
	flags.Func("binary", "ARCH=FILE: a static binary for Linux on that processor; may be repeated", setPair(binaries))
	flags.Func("label", "KEY=VALUE: a label of the image; may be repeated", setPair(labels))
	flags.StringVar(&p.Entrypoint, "entrypoint", "/manager", "path of the binary in the image")
	tag := flags.String("tag", "dev", "tag in the layout")
	out := flags.String("o", "image", "folder to write: an OCI layout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	digest, err := images.WriteIndex(*out, *tag, p, binaries, labels)
	if err == nil {
		fmt.Println(digest)
	}
	return err
}

// setPair returns a function for flag.Func that stores KEY=VALUE in pairs.
func setPair(pairs map[string]string) func(string) error {
	return func(text string) error {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return fmt.Errorf("%q is not KEY=VALUE", text)
		}
		pairs[key] = value
		return nil
	}
}

// runPush sends a layout to a registry.
func runPush(ctx context.Context, _ layout.Layout, args []string) error {
	if len(args) != 2 {
		return errors.New("name a layout and its destination: push dist/release/manager REGISTRY/memfit/manager:v0.1.0")
	}
	digest, err := images.Push(ctx, args[0], args[1])
	if err == nil {
		fmt.Println(digest)
	}
	return err
}
