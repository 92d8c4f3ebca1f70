// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// release runs hack/release.
func release(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./hack/release"}, args...)...)
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

// TestKrewManifest: each archive under the name of its platform, with its digest.
func TestKrewManifest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"linux_arm64", "windows_amd64"} {
		write(t, filepath.Join(dir, "kubectl-memfit_"+name+".tar.gz"), name)
	}
	file := filepath.Join(dir, "memfit.yaml")
	if out, err := release(
		t, "krew", "-version", "v1.2.3", "-archives", dir, "-from", "https://host.example/v1.2.3/", "-o", file,
	); err != nil {
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
	for _, args := range [][]string{
		{"-version", "1.2.3", "-archives", dir}, {"-version", "v1.2.3", "-archives", t.TempDir()},
	} {
		if out, err := release(t, append([]string{"krew", "-o", file}, args...)...); err == nil {
			t.Errorf("krew %v was accepted: %s", args, out)
		}
	}
}

// TestBundle: what the Operator Lifecycle Manager installs from the bundle is what config/default installs, but for
// what OLM makes itself and the user, which the platform chooses.
func TestBundle(t *testing.T) {
	dir := t.TempDir()
	kustomize := exec.Command("go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", "config/default")
	kustomize.Dir = "../.."
	manifests, err := kustomize.Output()
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, "install.yaml")
	write(t, built, string(manifests))
	if out, err := release(
		t, "bundle", "-version", "1.2.3", "-manifests", built, "-o", filepath.Join(dir, "bundle"),
	); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type permission struct {
		ServiceAccountName string
		Rules              []rbacv1.PolicyRule
	}
	type hook struct {
		Type, GenerateName, DeploymentName, FailurePolicy, SideEffects, WebhookPath, ReinvocationPolicy string
		ContainerPort, TargetPort, TimeoutSeconds                                                       int
		AdmissionReviewVersions                                                                         []string
		Rules                                                                                           []any
	}
	var csv struct {
		Metadata struct {
			Name        string
			Annotations map[string]string
		}
		Spec struct {
			Version      string
			InstallModes []struct {
				Type      string
				Supported bool
			}
			CustomResourceDefinitions struct {
				Owned []struct{ Name, Kind, Version, DisplayName, Description string }
			}
			WebhookDefinitions []hook
			Install            struct {
				Strategy string
				Spec     struct {
					ClusterPermissions, Permissions []permission
					Deployments                     []struct {
						Name  string
						Label map[string]string
						Spec  appsv1.DeploymentSpec
					}
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "bundle/manifests/memfit.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &csv); err != nil {
		t.Fatal(err)
	}
	if csv.Metadata.Name != "memfit.v1.2.3" || csv.Spec.Version != "1.2.3" || csv.Spec.Install.Strategy != "deployment" {
		t.Errorf("the version is %s, %s", csv.Metadata.Name, csv.Spec.Version)
	}
	spec := csv.Spec.Install.Spec
	if len(spec.Deployments) != 1 || len(spec.ClusterPermissions) != 1 || len(spec.Permissions) != 1 {
		t.Fatalf("%d Deployments, %d and %d permissions", len(spec.Deployments), len(spec.ClusterPermissions),
			len(spec.Permissions))
	}
	pod := spec.Deployments[0].Spec.Template.Spec
	if s := pod.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || len(pod.Volumes) != 0 ||
		len(pod.Containers[0].VolumeMounts) != 0 {
		t.Errorf("the pod names a user or certificates: %+v, %+v", s, pod.Volumes)
	}
	// The manager's rights: as many rules as its roles have, each with what the role says.
	var want, wantOwn []rbacv1.PolicyRule
	kinds := map[string]int{}
	for doc := range strings.SplitSeq(string(manifests), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			continue
		}
		kinds[role.Kind]++
		switch role.Name {
		case "memfit-manager-role", "memfit-metrics-auth-role":
			want = append(want, role.Rules...)
		case "memfit-leader-election-role", "memfit-usage-reader-token-role":
			wantOwn = append(wantOwn, role.Rules...)
		}
	}
	if diff := cmp.Diff(want, spec.ClusterPermissions[0].Rules); diff != "" {
		t.Errorf("rights in the cluster (-config +bundle):\n%s", diff)
	}
	if diff := cmp.Diff(wantOwn, spec.Permissions[0].Rules); diff != "" {
		t.Errorf("rights in its own namespace (-config +bundle):\n%s", diff)
	}
	var paths []string
	for _, h := range csv.Spec.WebhookDefinitions {
		paths = append(paths, h.WebhookPath)
		if h.FailurePolicy != "Ignore" || h.DeploymentName != spec.Deployments[0].Name || h.TargetPort != 9443 ||
			h.SideEffects != "None" || len(h.Rules) != 1 {
			t.Errorf("webhook %+v", h)
		}
	}
	if diff := cmp.Diff([]string{
		"/mutate--v1-pod", "/validate-memfit-dev-v1alpha1-clustermemoryprofile",
		"/validate-memfit-dev-v1alpha1-memoryprofile",
	}, paths); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	// Every owned kind is beside it, and every example is of an owned kind.
	ownedKinds := map[string]bool{}
	for _, o := range csv.Spec.CustomResourceDefinitions.Owned {
		ownedKinds[o.Kind] = true
		if _, err := os.Stat(
			filepath.Join(dir, "bundle/manifests", o.Name+"_customresourcedefinition.yaml"),
		); err != nil || o.Description == "" {
			t.Errorf("%s: %v, described as %q", o.Name, err, o.Description)
		}
	}
	if len(ownedKinds) != kinds["CustomResourceDefinition"] {
		t.Errorf("owned are %v, of %d", ownedKinds, kinds["CustomResourceDefinition"])
	}
	var examples []struct{ Kind string }
	if err := json.Unmarshal([]byte(csv.Metadata.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		if !ownedKinds[e.Kind] {
			t.Errorf("an example is a %s", e.Kind)
		}
	}
	var metadata struct{ Annotations map[string]string }
	readYAML(t, filepath.Join(dir, "bundle/metadata/annotations.yaml"), &metadata)
	if metadata.Annotations["operators.operatorframework.io.bundle.mediatype.v1"] != "registry+v1" {
		t.Errorf("annotations %v", metadata.Annotations)
	}
}
