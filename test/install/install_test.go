// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package install checks the manifests of config/: it builds the trees with kustomize, compares them with memfit's docs
// and code, and sends them to a real API server as dry runs. It needs no node.
package install

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/memfit/memfit/test/kustomize"
)

// root is the repository's root directory, relative to this package.
const root = "../.."

// trees are the kustomizations that install memfit.
var trees = []string{
	"config/default", "config/overlays/self-managed-certs", "config/overlays/read-configmap-keys", "config/overlays/lab",
	watchTree, seeTree, observeTree,
}

// withWebhook returns the trees that install the webhook.
func withWebhook() []string {
	return slices.DeleteFunc(slices.Clone(trees), func(tree string) bool { return tree == observeTree })
}

// built is one object of a built tree.
type built = unstructured.Unstructured

var cache sync.Map // tree -> func() ([]built, error)

// build returns the objects that `kustomize build tree` prints. Each tree is built once per run.
func build(t *testing.T, tree string) []built {
	t.Helper()
	once, _ := cache.LoadOrStore(tree, sync.OnceValues(func() ([]built, error) { return objectsOf(tree) }))
	objects, err := once.(func() ([]built, error))()
	if err != nil {
		t.Fatalf("building %s: %v", tree, err)
	}
	return slices.Clone(objects)
}

func objectsOf(tree string) ([]built, error) {
	manifests, err := kustomize.Build(tree)
	if err != nil {
		return nil, err
	}
	return decode(manifests)
}

func decode(manifests []byte) ([]built, error) {
	var objects []built
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var object built
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

// all returns the objects of one kind, converted to T.
func all[T any](t *testing.T, objects []built, kind string) []T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, as[T](t, object))
		}
	}
	return found
}

// one returns the object of this kind and name, converted to T.
func one[T any](t *testing.T, objects []built, kind, name string) T {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return as[T](t, object)
		}
	}
	t.Fatalf("%s %s not found", kind, name)
	panic("unreachable")
}

func as[T any](t *testing.T, object built) T {
	t.Helper()
	var typed T
	// Strict, because some clients let the API server drop a misspelled field silently.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(
		object.Object, &typed, true,
	); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return typed
}

// managerOf returns the manager's container.
func managerOf(t *testing.T, spec *corev1.PodSpec) *corev1.Container {
	t.Helper()
	for i := range spec.Containers {
		if spec.Containers[i].Name == "manager" {
			return &spec.Containers[i]
		}
	}
	t.Fatal("the pod has no container called manager")
	panic("unreachable")
}
