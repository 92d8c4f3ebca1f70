// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/test/goldenpods"
)

// TestGoldenPairsOfInject takes the webhook's golden pairs through the offline path: the same pods must come out.
func TestGoldenPairsOfInject(t *testing.T) {
	inputs, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data := read(t, file)
			r, err := Inject(data, Options{Namespace: "shop", Profiles: data})
			if filepath.Base(file) == "jvm-heaplimit.yaml" { // as the API server, also in the webhook's test
				if err == nil || !strings.Contains(err.Error(), "heapLimit is not for type JVM") {
					t.Errorf("%v, and a profile that the API server refuses must be refused", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			out := r.YAML()
			if diff := cmp.Diff(podOf(t, read(t, file+".injected")), podOf(t, out)); diff != "" {
				t.Errorf("the offline path gives another pod (-webhook +offline):\n%s", diff)
			}
			again, err := Inject(out, Options{Namespace: "shop", Profiles: data})
			if err != nil {
				t.Fatal(err)
			}
			if twice := again.YAML(); !bytes.Equal(out, twice) {
				t.Errorf("injecting the output again changes it:\n%s", cmp.Diff(string(out), string(twice)))
			}
		})
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func podOf(t *testing.T, stream []byte) *corev1.Pod {
	t.Helper()
	for _, d := range split(stream) {
		var pod corev1.Pod
		if err := yaml.Unmarshal(d.raw, &pod); err != nil {
			t.Fatal(err)
		}
		if pod.Kind == "Pod" {
			return &pod
		}
	}
	t.Fatal("no Pod in the stream")
	return nil
}
