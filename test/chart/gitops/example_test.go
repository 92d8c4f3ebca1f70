// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// example is the folder of the example in docs/guide/gitops.md.
const example = "../../../config/samples/gitops"

// application has the fields of an Application of Argo CD 3 that the example uses. Argo CD's own types would add all of
// its dependencies to this module.
type application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Project string `json:"project"`
		Source  struct {
			RepoURL        string `json:"repoURL"`
			TargetRevision string `json:"targetRevision"`
			Path           string `json:"path"`
		} `json:"source"`
		Destination struct {
			Server    string `json:"server"`
			Namespace string `json:"namespace"`
		} `json:"destination"`
		SyncPolicy struct {
			Automated struct {
				Prune    bool `json:"prune"`
				SelfHeal bool `json:"selfHeal"`
			} `json:"automated"`
			SyncOptions []string `json:"syncOptions"`
		} `json:"syncPolicy"`
		IgnoreDifferences []struct {
			Group             string   `json:"group"`
			Kind              string   `json:"kind"`
			JQPathExpressions []string `json:"jqPathExpressions"`
		} `json:"ignoreDifferences"`
	} `json:"spec"`
}

// objects decodes the documents of a file of the example. The test fails for fields that T does not have.
func objects[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, file))
	if err != nil {
		t.Fatal(err)
	}
	for documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; {
		document := make([]byte, len(text))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var object T
		if err := yaml.UnmarshalStrict(document[:n], &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, object)
	}
}

// checkPath checks that path is "memfit", which users create, or a folder of the example with a kustomization. owner is
// the object that has the path.
func checkPath(t *testing.T, owner, path string) {
	t.Helper()
	if path = strings.TrimPrefix(path, "./"); path == "memfit" {
		return
	}
	if _, err := os.Stat(filepath.Join(example, path, "kustomization.yaml")); err != nil {
		t.Errorf("%s: path %q of the example: %v", owner, path, err)
	}
}

func TestArgoCDExample(t *testing.T) {
	applications := objects[application](t, "argocd/applications.yaml")
	if len(applications) != 2 {
		t.Fatalf("%d Applications, want memfit's and shop's", len(applications))
	}
	for _, a := range applications {
		if a.APIVersion != "argoproj.io/v1alpha1" || a.Kind != "Application" || a.Spec.Source.RepoURL == "" ||
			a.Spec.Destination.Server == "" || !slices.Contains(a.Spec.SyncPolicy.SyncOptions, "ServerSideApply=true") {
			t.Errorf("%s %s %s lacks a required field: %+v", a.APIVersion, a.Kind, a.Name, a.Spec)
		}
		checkPath(t, a.Name, a.Spec.Source.Path)
		if workloads := a.Name == "shop"; workloads == (len(a.Spec.IgnoreDifferences) > 0) {
			t.Errorf("%s ignores %v, want ignored differences only for memfit", a.Name, a.Spec.IgnoreDifferences)
		}
	}
	wave := func(file string) string {
		var object metav1.PartialObjectMetadata
		text, err := os.ReadFile(filepath.Join(example, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		return object.Annotations["argocd.argoproj.io/sync-wave"]
	}
	got := []string{
		wave("shop/profiles/namespace.yaml"), wave("shop/profiles/web.yaml"), wave("shop/workloads/web.yaml"),
	}
	if want := []string{"-2", "-1", ""}; !slices.Equal(got, want) {
		t.Errorf("sync waves of namespace, profile and workload are %q, want %q", got, want)
	}
}

func TestFluxExample(t *testing.T) {
	sources := objects[sourcev1.GitRepository](t, "flux/source.yaml")
	if len(sources) != 1 {
		t.Fatalf("%d sources, want one", len(sources))
	}
	if got := sources[0].GroupVersionKind(); got != sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind) {
		t.Errorf("the source is a %s", got)
	}
	var before []string
	for _, k := range objects[kustomizev1.Kustomization](t, "flux/kustomizations.yaml") {
		if k.GroupVersionKind() != kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind) {
			t.Errorf("%s is a %s", k.Name, k.GroupVersionKind())
		}
		if ref := k.Spec.SourceRef; ref.Kind != sourcev1.GitRepositoryKind || ref.Name != sources[0].Name {
			t.Errorf("%s reads %+v, want the GitRepository %s", k.Name, ref, sources[0].Name)
		}
		if !k.Spec.Wait || k.Spec.Timeout == nil {
			t.Errorf("%s does not wait or has no timeout", k.Name)
		}
		checkPath(t, k.Name, k.Spec.Path)
		// Each depends only on the previous one.
		var dependsOn []string
		for _, d := range k.Spec.DependsOn {
			dependsOn = append(dependsOn, d.Name)
		}
		if !slices.Equal(dependsOn, before) {
			t.Errorf("%s depends on %v, want %v", k.Name, dependsOn, before)
		}
		before = []string{k.Name}
	}
	if !slices.Equal(before, []string{"shop"}) {
		t.Errorf("the last Kustomization is %v, want the workloads", before)
	}
}

// healthCheck returns the Lua health check of the example's argocd-cm, which docs/guide/gitops.md must repeat exactly.
func healthCheck(t *testing.T) string {
	t.Helper()
	data := objects[corev1.ConfigMap](t, "argocd/argocd-cm.yaml")[0].Data
	check := data["resource.customizations.health.memfit.dev_MemoryProfile"]
	if check == "" || data["resource.customizations.health.memfit.dev_ClusterMemoryProfile"] != check {
		t.Fatalf("the two kinds have different checks or no check: %v", data)
	}
	page, err := os.ReadFile("../../../docs/guide/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```lua\n"+check+"```\n") {
		t.Errorf("docs/guide/gitops.md lacks the check of argocd-cm.yaml:\n%s", check)
	}
	return check
}
