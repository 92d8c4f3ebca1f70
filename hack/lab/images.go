// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/memfit/memfit/hack/lab/internal/images"
	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/node"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/sbom"
)

func runImages(ctx context.Context, l layout.Layout, args []string) error {
	if err := flag.NewFlagSet("images", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	recipes := images.Workloads()
	report := progress.New(os.Stderr, len(recipes))
	built, err := buildImages(ctx, l, recipes, report)
	if err != nil {
		return err
	}
	if n, err := running(l); err == nil {
		for _, image := range built {
			if err := n.Import(ctx, image.Path); err != nil {
				return err
			}
		}
	}
	report.Total("The images are ready in " + l.Images())
	return nil
}

func buildImages(
	ctx context.Context, l layout.Layout, recipes []images.Recipe, report *progress.Reporter,
) ([]node.Image, error) {
	source, err := sourceDir("")
	if err != nil {
		return nil, err
	}
	builder := images.Builder{Source: source, Store: l.Images(), Report: report}
	var built []node.Image
	for _, recipe := range recipes {
		path, err := builder.Ensure(ctx, recipe)
		if err != nil {
			return nil, err
		}
		built = append(built, node.Image{Ref: recipe.Ref, Path: path})
	}
	return built, nil
}

func runImage(_ context.Context, _ layout.Layout, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var p images.Program
	flags.StringVar(&p.Binary, "binary", "", "static binary to put into the image")
	flags.StringVar(&p.Ref, "name", "", "name of the image, for example memfit.test/manager:dev")
	flags.StringVar(&p.Entrypoint, "entrypoint", "/manager", "path of the binary in the image")
	out := flags.String("o", "image.tar", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return images.WriteProgram(*out, p)
}

func runDigest(_ context.Context, _ layout.Layout, args []string) error {
	if len(args) != 1 {
		return errors.New("name one image tar")
	}
	digest, err := images.Digest(args[0])
	if err == nil {
		fmt.Println(digest)
	}
	return err
}

// runSBOM writes the software bill of materials of a program.
func runSBOM(_ context.Context, _ layout.Layout, args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	binary := flags.String("binary", "", "Go program to describe")
	version := flags.String("version", "unknown", "version of the program")
	out := flags.String("o", "sbom.cdx.json", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	bom, err := sbom.Binary(*binary, *version)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := sbom.Write(&text, bom); err != nil {
		return err
	}
	return os.WriteFile(*out, text.Bytes(), 0o644)
}
