// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// krew runs hack/krew.sh.
func krew(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "hack/krew.sh", args...)
	cmd.Dir = "../.."
	return cmd.CombinedOutput()
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestKrewManifest checks that the manifest has each archive with its platform and digest.
func TestKrewManifest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"linux_arm64", "windows_amd64"} {
		write(t, filepath.Join(dir, "kubectl-memfit_"+name+".tar.gz"), name)
	}
	file := filepath.Join(dir, "memfit.yaml")
	if out, err := krew(t, "v1.2.3", dir, "https://host.example/v1.2.3/", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type platform struct {
		Selector         struct{ MatchLabels map[string]string }
		URI, SHA256, Bin string
	}
	var got struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description, Caveats string
			Platforms                                                 []platform
		}
	}
	readYAML(t, file, &got)
	want := []platform{
		{URI: "https://host.example/v1.2.3/kubectl-memfit_linux_arm64.tar.gz", SHA256: digestOf("linux_arm64"),
			Bin: "kubectl-memfit"},
		{URI: "https://host.example/v1.2.3/kubectl-memfit_windows_amd64.tar.gz", SHA256: digestOf("windows_amd64"),
			Bin: "kubectl-memfit.exe"},
	}
	want[0].Selector.MatchLabels = map[string]string{"os": "linux", "arch": "arm64"}
	want[1].Selector.MatchLabels = map[string]string{"os": "windows", "arch": "amd64"}
	if diff := cmp.Diff(want, got.Spec.Platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	// krew's own limits: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
	if got.Kind != "Plugin" || got.Metadata.Name != "memfit" || got.Spec.Version != "v1.2.3" ||
		len(got.Spec.ShortDescription) > 50 || strings.HasSuffix(got.Spec.ShortDescription, ".") {
		t.Errorf("the manifest is %+v", got)
	}
	for _, args := range [][]string{{"1.2.3", dir}, {"v1.2.3", t.TempDir()}} {
		if out, err := krew(t, append(args, "https://host.example", file)...); err == nil {
			t.Errorf("krew %v was accepted: %s", args, out)
		}
	}
}
