// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

var server struct {
	sync.Once
	env    envtest.Environment
	config *rest.Config
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(binary.dir) // "" if the manager was not built
	if server.config != nil {
		if err := server.env.Stop(); err != nil && code == 0 {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// apiServer returns a client of a real API server with memfit's CRDs.
func apiServer(t *testing.T) client.Client {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set, and this test needs an API server: run `make test`")
	}
	server.Do(func() {
		server.env.CRDDirectoryPaths = []string{filepath.Join(root, "config/crd/bases")}
		server.env.ErrorIfCRDPathMissing = true
		server.config, server.err = server.env.Start()
	})
	if server.err != nil {
		t.Fatalf("starting an API server: %v", server.err)
	}
	c, err := client.New(server.config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, "Strict")
}

// TestAPIServerTakesTheTrees sends every object, except cert-manager's, as `kubectl apply --server-side` would.
func TestAPIServerTakesTheTrees(t *testing.T) {
	c := apiServer(t)
	for _, tree := range trees {
		for _, object := range build(t, tree) {
			if strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") {
				continue // its CRDs are not installed here; the end-to-end suite applies them
			}
			if object.GetKind() == "Namespace" {
				// Dry runs of the other objects need the namespace and its labels.
				if err := client.IgnoreAlreadyExists(c.Create(t.Context(), object.DeepCopy())); err != nil {
					t.Fatal(err)
				}
			}
			apply := client.ApplyConfigurationFromUnstructured(&object)
			if err := c.Apply(
				t.Context(), apply, client.DryRunAll, client.FieldOwner("test"), client.ForceOwnership,
			); err != nil {
				t.Errorf("%s: %s %s: %v", tree, object.GetKind(), object.GetName(), err)
			}
		}
	}
}

// TestPodsAreRestricted checks that the API server admits the manager's pod under the Pod Security Standard that the
// namespace enforces.
func TestPodsAreRestricted(t *testing.T) {
	c := apiServer(t)
	for _, tree := range trees {
		space := one[corev1.Namespace](t, build(t, tree), "Namespace", namespace)
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), &space)); err != nil {
			t.Fatal(err)
		}
		// envtest runs no controller that would create the ServiceAccount.
		account := &corev1.ServiceAccount{}
		account.Namespace, account.Name = namespace, manager
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), account)); err != nil {
			t.Fatal(err)
		}
		d := deployment(t, tree)
		pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
		pod.Namespace, pod.GenerateName = namespace, "manager-"
		if err := c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("%s: the namespace refuses the manager's pod: %v", tree, err)
		}
		// Without enforcement by the namespace, the check above would be ineffective.
		loose := pod.DeepCopy()
		loose.Spec.SecurityContext.SeccompProfile = nil
		if err := c.Create(t.Context(), loose, client.DryRunAll); err == nil ||
			!strings.Contains(err.Error(), "PodSecurity") {
			t.Errorf("%s: a pod without a seccomp profile: error %v, want a refusal by PodSecurity", tree, err)
		}
	}
}

func TestSamples(t *testing.T) {
	c := apiServer(t)
	samples := build(t, "config/samples")
	if len(samples) < 9 {
		t.Errorf("%d samples, want a profile and a workload for each of four runtimes and a cluster default", len(samples))
	}
	fromPage := recipes(t)
	if len(fromPage) < 16 {
		t.Errorf("%d objects in docs/guide/recipes.md, want a profile and a workload for each of eight", len(fromPage))
	}
	for _, sample := range append(samples, fromPage...) {
		if sample.GetKind() != "ClusterMemoryProfile" {
			sample.SetNamespace("default")
		}
		if err := c.Create(t.Context(), &sample, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %v", sample.GetKind(), sample.GetName(), err)
		}
	}
}

// recipes returns the objects in the YAML of docs/guide/recipes.md.
func recipes(t *testing.T) (objects []built) {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(read(t, "docs/guide/recipes.md"), -1)
	for _, block := range blocks {
		some, err := decode(block[1])
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, some...)
	}
	return objects
}

// create sends a MemoryProfile with this spec to the API server as a dry run, and returns the defaulted object.
func create(ctx context.Context, c client.Client, t *testing.T, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	profile := &unstructured.Unstructured{}
	manifest := "apiVersion: memfit.dev/v1alpha1\nkind: MemoryProfile\nmetadata: {name: web, namespace: default}\nspec: " +
		spec
	if err := yaml.Unmarshal([]byte(manifest), &profile.Object); err != nil {
		t.Fatal(err)
	}
	return profile, c.Create(ctx, profile, client.DryRunAll)
}
