// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command mapsample converts profiles for clusters without memfit's webhook: for every MemoryProfile and
// ClusterMemoryProfile in the given files it writes a MutatingAdmissionPolicy and its binding to a file named after the
// profile. A MemoryProfile without a namespace is in "default".
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apimachineryyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/hack/mapsample/admissionpolicy"
	"github.com/memfit/memfit/internal/profile"
)

func main() {
	out := flag.String("o", "config/samples/map", "folder to write to")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mapsample:", err)
		os.Exit(1)
	}
}

func run(out string, files []string) error {
	if len(files) == 0 {
		return errors.New("no files with profiles given")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for documents := apimachineryyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := write(out, file, document); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// write writes one profile's policy; it ignores other kinds.
func write(out, file string, document []byte) error {
	var mp v1alpha1.ClusterMemoryProfile // a MemoryProfile has the same fields, except namespaceSelector
	if err := yaml.Unmarshal(document, &mp); err != nil {
		return err
	}
	n := &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: mp.Kind, Name: mp.Name}, Namespace: mp.Namespace, Generation: 1,
		NamespaceSelector: mp.Spec.NamespaceSelector, Spec: &mp.Spec.MemoryProfileSpec,
	}
	switch mp.Kind {
	case profile.KindNamespaced:
		if n.Namespace == "" {
			n.Namespace = "default"
		}
	case profile.KindCluster:
	default:
		return nil
	}
	objects, err := admissionpolicy.For(n)
	if err != nil {
		fmt.Printf("%s: no policy: %v\n", n, err)
		return nil
	}
	policy, err := yaml.Marshal(objects.Policy)
	if err != nil {
		return err
	}
	binding, err := yaml.Marshal(objects.Binding)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(
		&text,
		"# Written by `make map-sample` from %s: %s without memfit's webhook,\n# for Kubernetes 1.36 and later. See "+
			"docs/guide/gitops.md for what it cannot do.\n",
		file, n,
	)
	for _, left := range objects.LeftOut {
		fmt.Fprintf(&text, "# Left out: %s.\n", left)
	}
	fmt.Fprintf(&text, "%s---\n%s", policy, binding)
	path := filepath.Join(out, objects.Policy.Name+".yaml")
	fmt.Printf("%s: %d mutations, %d left out\n", path, len(objects.Policy.Spec.Mutations), len(objects.LeftOut))
	return os.WriteFile(path, []byte(text.String()), 0o644)
}
