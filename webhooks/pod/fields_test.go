// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/test/goldenpods"
)

// planned are the fields of a new pod that its plan depends on, as paths of JSON names, each with all that is below it;
// "[]" is any item of a list. The cache of running pods keeps them. What decides who governs a pod (its names, labels,
// annotations and owners) is in governing.
var planned = []string{
	"metadata.annotations",       // those of memfit.dev
	"spec.activeDeadlineSeconds", // by which quotas choose pods
	"spec.containers[].args",
	"spec.containers[].command",
	"spec.containers[].env",
	"spec.containers[].envFrom",
	"spec.containers[].image", // which says whether what replicas were found to run still holds
	"spec.containers[].name",
	"spec.containers[].resizePolicy",
	"spec.containers[].resources",
	"spec.containers[].restartPolicy",
	"spec.containers[].volumeMounts", // of the volumes that are read
	"spec.initContainers[].args",
	"spec.initContainers[].command",
	"spec.initContainers[].env",
	"spec.initContainers[].envFrom",
	"spec.initContainers[].image",
	"spec.initContainers[].name",
	"spec.initContainers[].resizePolicy",
	"spec.initContainers[].resources",
	"spec.initContainers[].restartPolicy",
	"spec.initContainers[].volumeMounts",
	"spec.os",
	"spec.overhead",          // which quotas count
	"spec.priorityClassName", // by which quotas choose pods
	"spec.resources",
	"spec.restartPolicy",
	"spec.volumes", // those in memory, which count against the limit
}

// leafPod has one of each thing that a plan depends on, so that what is below it counts, and a volume that is not in
// memory.
func leafPod() *corev1.Pod {
	size := func() *resource.Quantity { return new(resource.MustParse("64Mi")) }
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "example.test/app:1", Command: []string{"node"}, Args: []string{"server.js"},
			Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}},
		}
	}
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size()}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: "shop"},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: memory}},
				{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			InitContainers: []corev1.Container{container("prepare")}, Containers: []corev1.Container{container("app")},
		},
	}
}

// governing are fields of the metadata that decide who governs a pod.
var governing = []string{
	"metadata.name", "metadata.generateName", "metadata.namespace", "metadata.uid", "metadata.labels",
	"metadata.annotations", "metadata.ownerReferences",
}

// TestOneListOfFields changes every field of a pod, one at a time. A field that is not in the list does not change the
// answer, and one that is in the list is kept in the cache of running pods.
func TestOneListOfFields(t *testing.T) {
	h, _, profile := served(t, "../../internal/inject/testdata/size-on-create.yaml")
	base := leafPod()
	base.Annotations = map[string]string{"memfit.dev/profile": profile.Name}
	basePatch := patchFor(t, h, base)
	if len(basePatch) == 0 {
		t.Fatal("the pod is not governed: nothing would be compared")
	}
	inside, outside := 0, 0
	everyLeaf(base, func(path string, pod *corev1.Pod) {
		if listed(governing, path) {
			return
		}
		if !listed(planned, path) || strings.HasPrefix(path, "spec.volumes[1]") {
			outside++
			if patch := patchFor(t, h, pod); patch != basePatch {
				t.Errorf("%s is not in the list, and changes the patch: %s", path, cmp.Diff(basePatch, patch))
			}
			return
		}
		inside++
		if kept := slim(t, pod); reflect.DeepEqual(kept, slim(t, base)) && !listed(notCached, path) {
			t.Errorf("%s is in the list, and dropped from the cache", path)
		}
	})
	if inside < 100 || outside < 500 {
		t.Errorf("%d fields of the list were changed and %d others: that is not all of a pod", inside, outside)
	}
}

// notCached are fields of the list that are not kept of running pods.
var notCached = []string{
	"spec.overhead", // counted by quotas at creation only; a resize does not change it
	// Only memory is kept: other resources matter to a plan only where it sizes a new pod, which may be Guaranteed.
	"spec.resources.limits.x", "spec.resources.requests.x", "spec.resources.claims",
	"spec.containers[].resources.limits.x", "spec.containers[].resources.requests.x", "spec.containers[].resources.claims",
	"spec.initContainers[].resources.limits.x", "spec.initContainers[].resources.requests.x",
	"spec.initContainers[].resources.claims",
}

// listed reports whether a path, or what it is below of, is in a list.
func listed(list []string, path string) bool {
	for _, index := range []string{"[0]", "[1]"} {
		path = strings.ReplaceAll(path, index, "[]")
	}
	return slices.ContainsFunc(list, func(of string) bool {
		rest, below := strings.CutPrefix(path, of)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func jsonOf(t *testing.T, pod *corev1.Pod) []byte {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// patchFor is what the handler makes of a pod.
func patchFor(t *testing.T, h *testHandler, pod *corev1.Pod) string {
	t.Helper()
	return string(asked(t, h, reviewOf(jsonOf(t, pod))).Patch)
}

func slim(t *testing.T, pod *corev1.Pod) any {
	t.Helper()
	kept, err := informers.SlimPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// everyLeaf changes a copy of the pod at one field after the other, and tells which by its JSON path. Of a list it
// changes the items that are there, or else adds one, and of a map it adds the key "x".
func everyLeaf(base *corev1.Pod, changed func(path string, pod *corev1.Pod)) {
	var visit func(t reflect.Type, path string, at func(*corev1.Pod) reflect.Value)
	leaf := func(path string, at func(*corev1.Pod) reflect.Value, change func(reflect.Value)) {
		pod := base.DeepCopy()
		change(at(pod))
		changed(path, pod)
	}
	visit = func(t reflect.Type, path string, at func(*corev1.Pod) reflect.Value) {
		switch {
		case t == reflect.TypeFor[resource.Quantity]():
			leaf(path, at, func(v reflect.Value) { v.Set(reflect.ValueOf(resource.MustParse("7Mi"))) })
		case t == reflect.TypeFor[metav1.Time]():
			leaf(path, at, func(v reflect.Value) { v.Set(reflect.ValueOf(metav1.Unix(1, 0))) })
		case t == reflect.TypeFor[metav1.FieldsV1]():
			leaf(path, at, func(v reflect.Value) { v.Set(reflect.ValueOf(*metav1.NewFieldsV1("{}"))) })
		case t.Kind() == reflect.Pointer:
			visit(t.Elem(), path, func(p *corev1.Pod) reflect.Value {
				v := at(p)
				if v.IsNil() {
					v.Set(reflect.New(t.Elem()))
				}
				return v.Elem()
			})
		case t.Kind() == reflect.Struct:
			for i := range t.NumField() {
				f := t.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				below := strings.TrimPrefix(path+"."+name, ".")
				if name == "" {
					below = path // inlined
				}
				if f.IsExported() && name != "-" {
					visit(f.Type, below, func(p *corev1.Pod) reflect.Value { return at(p).Field(i) })
				}
			}
		case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
			for i := range max(1, at(base.DeepCopy()).Len()) {
				visit(t.Elem(), path+"["+string(rune('0'+i))+"]", func(p *corev1.Pod) reflect.Value {
					v := at(p)
					if v.Len() == 0 {
						v.Set(reflect.MakeSlice(t, 1, 1))
					}
					return v.Index(i)
				})
			}
		case t.Kind() == reflect.Map:
			leaf(path+".x", at, func(v reflect.Value) {
				if v.IsNil() {
					v.Set(reflect.MakeMap(t))
				}
				value := reflect.New(t.Elem()).Elem()
				changeValue(value)
				v.SetMapIndex(reflect.ValueOf("x").Convert(t.Key()), value)
			})
		default:
			leaf(path, at, changeValue)
		}
	}
	visit(reflect.TypeFor[corev1.Pod](), "", func(p *corev1.Pod) reflect.Value { return reflect.ValueOf(p).Elem() })
}

// changeValue gives a value of a simple type another one.
func changeValue(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("7Mi")))
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.Kind() == reflect.Slice:
		v.SetBytes([]byte("x"))
	default:
		panic("a pod has a " + v.Type().String() + ", which this test cannot change yet")
	}
}

// TestAPlanReadsNoOtherField: without everything that is not in the list, the pods of the golden pairs get the same
// answer.
func TestAPlanReadsNoOtherField(t *testing.T) {
	files, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		h, pod, _ := served(t, file)
		var tree map[string]any
		if err := json.Unmarshal(pod, &tree); err != nil {
			t.Fatal(err)
		}
		keepListed(tree, "")
		kept, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asked(t, h, reviewOf(pod)), asked(t, h, reviewOf(kept))); diff != "" {
			t.Errorf("%s: -all fields +those of the list\n%s", file, diff)
		}
	}
}

// keepListed drops from a tree what is not in the list.
func keepListed(tree map[string]any, prefix string) {
	list := append(slices.Clone(planned), governing...)
	for key, value := range tree {
		path := prefix + key
		if listed(list, path) {
			continue
		}
		within := slices.ContainsFunc(
			list, func(of string) bool { return strings.HasPrefix(of, path+".") || strings.HasPrefix(of, path+"[].") },
		)
		switch value := value.(type) {
		case map[string]any:
			keepListed(value, path+".")
		case []any:
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					keepListed(item, path+"[].")
				}
			}
		}
		if !within {
			delete(tree, key)
		}
	}
}
