// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	stream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	folder    = root + "/charts/memfit"
	namespace = "memfit-system"
)

// object is a manifest from Helm or kustomize.
type object = unstructured.Unstructured

// load reads the chart from its folder.
func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the objects of `helm template memfit charts/memfit -n memfit-system -f VALUES`, or the chart schema's
// error.
func render(c *chartv2.Chart, values string) ([]object, error) {
	files, err := texts(c, values, common.ReleaseOptions{IsInstall: true, Revision: 1})
	if err != nil {
		return nil, err
	}
	var objects []object
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		found, err := decode([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// texts returns the rendered templates by path.
func texts(c *chartv2.Chart, values string, release common.ReleaseOptions) (map[string]string, error) {
	over := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &over); err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	release.Name, release.Namespace = "memfit", namespace
	all, err := util.ToRenderValues(c, over, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// overlay returns the objects of `kustomize build` for a temporary overlay of resources and components, which are
// folders below config/.
func overlay(t *testing.T, resources, components []string) []object {
	t.Helper()
	top, err := filepath.Abs(filepath.Join(root, "config"))
	if err != nil {
		t.Fatal(err)
	}
	onDisk := filesys.MakeFsOnDisk()
	dir, err := filesys.NewTmpConfirmedDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = onDisk.RemoveAll(dir.String()) })
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for key, folders := range map[string][]string{"resources": resources, "components": components} {
		if len(folders) == 0 {
			continue
		}
		text += key + ":\n"
		for _, f := range folders {
			relative, err := filepath.Rel(dir.String(), filepath.Join(top, f))
			if err != nil {
				t.Fatal(err)
			}
			text += "- " + relative + "\n"
		}
	}
	if err := onDisk.WriteFile(filepath.Join(dir.String(), "kustomization.yaml"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(onDisk, dir.String())
	if err != nil {
		t.Fatalf("building %v with %v: %v", resources, components, err)
	}
	manifests, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(manifests)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func decode(manifests []byte) ([]object, error) {
	var objects []object
	for decoder := stream.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var o object
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case o.Object != nil:
			objects = append(objects, o)
		}
	}
}

// byName returns the objects by API version, kind, namespace and name.
func byName(t *testing.T, objects []object) map[string]any {
	t.Helper()
	named := map[string]any{}
	for _, o := range objects {
		key := fmt.Sprintf("%s %s %s/%s", o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		if _, twice := named[key]; twice {
			t.Errorf("%s occurs twice", key)
		}
		named[key] = comparable(o.Object)
	}
	return named
}

// comparable removes intended differences and empty lists, and sorts lists of items with names.
func comparable(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			switch {
			case key == "app.kubernetes.io/managed-by": // kustomize or Helm
			case key == "helm.sh/resource-policy": // TestCRDsAreKept
			case key == "memfit.dev/lab": // config/overlays/lab, which has no equivalent value
			case isEmptyList(item): // kustomize deleted the last item
			default:
				out[key] = comparable(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = comparable(item)
		}
		if named(out) {
			slices.SortStableFunc(out, func(a, b any) int {
				return strings.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
			})
		}
		return out
	default:
		return v
	}
}

func isEmptyList(value any) bool {
	list, ok := value.([]any)
	return ok && len(list) == 0
}

func named(list []any) bool {
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || m["name"] == nil {
			return false
		}
	}
	return true
}
