// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/goldenpods"
	"github.com/memfit/memfit/webhooks/pod"
	"github.com/memfit/memfit/webhooks/pod/fastpath"
)

// pods are those of the golden pairs of internal/inject, as JSON: every shape that matters to a plan is among them.
func pods(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(content, []byte("\n---")) {
			var kind struct{ Kind string }
			object, err := yaml.YAMLToJSON(document)
			if err != nil || json.Unmarshal(object, &kind) != nil || kind.Kind != "Pod" {
				continue
			}
			found[filepath.Base(file)] = object
		}
	}
	if len(found) < 60 {
		t.Fatalf("%d pods found, want the 60 and more of internal/inject", len(found))
	}
	return found
}

// needed is what a plan is made from, out of a pod decoded the usual way.
func needed(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: neededMeta(&p.ObjectMeta)}
	inMemory := 0
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			inMemory++
		}
	}
	out.Spec = corev1.PodSpec{OS: p.Spec.OS, Resources: p.Spec.Resources, RestartPolicy: p.Spec.RestartPolicy}
	slim := func(list []corev1.Container) []corev1.Container {
		if list == nil {
			return nil
		}
		all := make([]corev1.Container, 0, len(list))
		for _, c := range list {
			slimmed := corev1.Container{
				Name: c.Name, Image: c.Image, Command: c.Command, Args: c.Args, Env: c.Env, EnvFrom: c.EnvFrom,
				Resources:    c.Resources,
				ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy,
			}
			for _, m := range c.VolumeMounts {
				if inMemory == 0 {
					break // nobody asks for them
				}
				slimmed.VolumeMounts = append(slimmed.VolumeMounts, corev1.VolumeMount{Name: m.Name})
			}
			all = append(all, slimmed)
		}
		return all
	}
	out.Spec.Containers, out.Spec.InitContainers = slim(p.Spec.Containers), slim(p.Spec.InitContainers)
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			out.Spec.Volumes = append(out.Spec.Volumes, v)
		}
	}
	return out
}

func neededMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, GenerateName: m.GenerateName, Namespace: m.Namespace, UID: m.UID, Labels: m.Labels,
		Annotations: m.Annotations, OwnerReferences: m.OwnerReferences,
	}
}

func TestPodIsWhatTheUsualWayGives(t *testing.T) {
	for name, object := range pods(t) {
		var usual, got corev1.Pod
		if err := json.Unmarshal(object, &usual); err != nil {
			t.Fatal(err)
		}
		outline, ok := read(object, &got)
		if !ok {
			t.Errorf("%s: taken for unusual", name)
		}
		if diff := cmp.Diff(outlined(t, object), outline); diff != "" {
			t.Errorf("%s: outline -usual +got\n%s", name, diff)
		}
		if diff := cmp.Diff(needed(&usual), &got, cmp.Comparer(func(a, b map[string]string) bool {
			return len(a) == len(b) && cmp.Equal(len(a) == 0, len(b) == 0) && equal(a, b)
		})); diff != "" {
			t.Errorf("%s: -usual +got\n%s", name, diff)
		}
	}
}

// outlined is the outline as pointers tell it.
func outlined(t *testing.T, object []byte) pod.Outline {
	t.Helper()
	type container struct {
		Resources *struct{ Limits, Requests map[string]any }
	}
	var tree struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			container

			InitContainers, Containers []container
		}
	}
	if err := json.Unmarshal(object, &tree); err != nil {
		t.Fatal(err)
	}
	whole := func(c container) pod.Resources {
		if c.Resources == nil {
			return pod.Resources{}
		}
		return pod.Resources{Present: true, Limits: c.Resources.Limits != nil, Requests: c.Resources.Requests != nil}
	}
	of := func(list []container) []pod.Resources {
		var all []pod.Resources
		for _, c := range list {
			all = append(all, whole(c))
		}
		return all
	}
	return pod.Outline{
		Annotations: tree.Metadata.Annotations != nil, InitContainers: of(tree.Spec.InitContainers),
		Containers: of(tree.Spec.Containers), Whole: whole(tree.Spec.container),
	}
}

func equal(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// around is a request about object as the API server writes it.
func around(object []byte) []byte {
	return fmt.Appendf(nil,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},`+
			`"namespace":"shop","operation":"CREATE","userInfo":{"username":"a\"b"},"object":%s,"oldObject":null,"dryRun":true,"options":{"kind":"CreateOptions"}}}`, object)
}

func read(object []byte, into *corev1.Pod) (outline pod.Outline, ok bool) {
	r, ok := fastpath.Read(new(boundedjson.Scanner), around(object))
	if !ok {
		return outline, false
	}
	outline, _, ok = rest(r, into)
	if len(into.Spec.Volumes) == 0 { // whether mounts are there depends on where volumes stand; nobody asks
		for _, list := range [][]corev1.Container{into.Spec.Containers, into.Spec.InitContainers} {
			for i := range list {
				list[i].VolumeMounts = nil
			}
		}
	}
	return outline, ok
}

// rest reads the rest of a review, by way of its template.
func rest(r fastpath.Review, into *corev1.Pod) (outline pod.Outline, dryRun, ok bool) {
	if r.UID == "" {
		return outline, false, false // not read to here
	}
	template, dryRun, ok := r.AppendTemplate(nil)
	if !ok {
		return outline, false, false
	}
	outline, ok = r.Rest(template, into)
	return outline, dryRun, ok
}

func TestRead(t *testing.T) {
	const before, pod = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","namespace":"n"`, `{"metadata":{"name":"a"},"spec":{}}`
	cases := map[string]struct {
		body     string
		wantName string // of the pod; empty: unusual
	}{
		"as sent": {body: string(around([]byte(pod))), wantName: "a"},
		"with spaces": {
			body: "{ \"kind\" : \"AdmissionReview\" , \"apiVersion\":\"admission.k8s.io/v1\",\n\t\"request\": { " +
				"\"uid\":\"u\",\"namespace\":\"n\",\"object\": { \"metadata\" : {\"name\": \"b\" }, \"spec\" : { } } } } ",
			wantName: "b",
		},
		"braces and quotes in strings": {
			body:     before + `,"x":"}\"{","y":"\\","object":{"a":"}\"{","metadata":{"labels":{"a":"\\\""},"name":"c"},"spec":{"b":"\\"}}}}`,
			wantName: "c",
		},
		"an older version": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","namespace":"n","object":` + pod + `}}`,
		},
		"no version before": {
			body: `{"kind":"AdmissionReview","request":{"uid":"u","namespace":"n","object":` + pod +
				`},"apiVersion":"admission.k8s.io/v1"}`,
		},
		"no request": {body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`},
		"no uid": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"namespace":"n","object":` + pod +
				`}}`,
		},
		"no object":      {body: before + `}}`},
		"object is null": {body: before + `,"object":null}}`},
		"no metadata":    {body: before + `,"object":{"spec":{}}}}`},
		"no spec":        {body: before + `,"object":{"metadata":{}}}}`},
		"spec first":     {body: before + `,"object":{"spec":{},"metadata":{"name":"a"}}}}`},
		"an escaped key": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"u\u0069d":"u","namespace":"n","object":` + pod + `}}`,
		},
		"a comma too many":   {body: before + `,,"object":` + pod + `}}`},
		"a comma too few":    {body: before + `"object":` + pod + `}}`},
		"a comma at the end": {body: before + `,"object":{"metadata":{"name":"a",},"spec":{}}}}`},
		"not JSON":           {body: `kind: AdmissionReview`},
		"nothing":            {body: ``},
		"an escape in uid": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"\u0041","namespace":"n","object":` + pod + `}}`,
		},
		"no namespace": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":` + pod + `}}`,
		},
		"the namespace comes late": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":` + pod +
				`,"namespace":"n"}}`,
		},
		"two uids":  {body: before + `,"uid":"v","object":` + pod + `}}`},
		"two names": {body: before + `,"object":{"metadata":{"name":"a","name":"b"},"spec":{}}}}`},
		"a label twice": {
			body: before + `,"object":{"metadata":{"name":"a","labels":{"a":"b","a":"b"}},"spec":{}}}}`,
		},
		"two kinds": {
			body: `{"kind":"AdmissionReview","kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","namespace":"n","object":` + pod + `}}`,
		},
		"a number for a uid": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":1,"namespace":"n","object":` +
				pod + `}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := fastpath.Read(new(boundedjson.Scanner), []byte(c.body))
			if wantOK := c.wantName != ""; ok != wantOK || ok && (got.Meta.Name != c.wantName || got.UID == "") {
				t.Fatalf("read %+v (%t), want pod %q", got, ok, c.wantName)
			}
			var pod corev1.Pod
			if _, _, rest := rest(got, &pod); rest != ok {
				t.Errorf("the rest is usual: %t, want %t", rest, ok)
			}
		})
	}
}

// TestTwiceIsUnusual: what is read and comes twice is left to the usual way, and no outcome for it is shared. Of two
// volumes lists the last one counts for a decoder, and both would make one template.
func TestTwiceIsUnusual(t *testing.T) {
	const container = `{"name":"app","env":[{"name":"A","value":"1"}],"resources":{"limits":{"memory":"1Gi"}}}`
	for name, spec := range map[string]string{
		"volumes":         `"volumes":[],"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"1Gi"}}],"containers":[` + container + `]`,
		"containers":      `"containers":[],"containers":[` + container + `]`,
		"a name":          `"containers":[{"name":"a","name":"b"}]`,
		"variables":       `"containers":[{"name":"a","env":[{"name":"A"}],"env":[]}]`,
		"limits":          `"containers":[{"name":"a","resources":{"limits":{},"limits":{"memory":"1Gi"}}}]`,
		"memory":          `"containers":[{"name":"a","resources":{"limits":{"memory":"1Gi","memory":"2Gi"}}}]`,
		"restart policy":  `"containers":[],"restartPolicy":"Never","restartPolicy":"Always"`,
		"the spec":        `"containers":[]},"spec":{"containers":[]`,
		"the metadata":    `"containers":[]},"metadata":{"name":"b"`,
		"a claimed limit": `"containers":[{"name":"a","resources":{"claims":[]},"resources":{}}]`,
	} {
		r, ok := fastpath.Read(new(boundedjson.Scanner), around([]byte(`{"metadata":{"name":"a"},"spec":{`+spec+`}}`)))
		if !ok {
			t.Fatalf("%s: %s is not even begun", name, spec)
		}
		if _, _, ok := rest(r, new(corev1.Pod)); ok {
			t.Errorf("%s: read twice and taken for usual", name)
		}
	}
	for _, late := range []string{
		`,"uid":"v"`, `,"namespace":"n"`, `,"object":{}`, `,"dryRun":true,"dryRun":false`, `},"request":{`, `}} {`,
	} {
		whole := bytes.Replace(
			around([]byte(`{"metadata":{"name":"a"},"spec":{}}`)), []byte(`,"oldObject":null`), []byte(late), 1,
		)
		r, ok := fastpath.Read(new(boundedjson.Scanner), whole)
		if _, _, rest := rest(r, new(corev1.Pod)); !ok || rest {
			t.Errorf("%s: read %t, rest %t", whole, ok, rest)
		}
	}
}

// TestCutOff: wherever a request ends too early, that is noticed, at the latest with the rest.
func TestCutOff(t *testing.T) {
	whole := around(
		[]byte(
			`{"metadata":{"name":"a","labels":{"b":"c"}},"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"1"}],"resources":{"limits":{"memory":"1Gi"}}}]}}`,
		),
	)
	for end := range whole {
		var pod corev1.Pod
		if r, ok := fastpath.Read(new(boundedjson.Scanner), whole[:end]); ok {
			if _, _, ok := rest(r, &pod); ok {
				t.Errorf("%s passes for whole", whole[:end])
			}
		}
	}
	r, _ := fastpath.Read(new(boundedjson.Scanner), whole)
	if _, dryRun, ok := rest(r, new(corev1.Pod)); !ok || !dryRun || r.Namespace != "shop" || r.UID != "u-1" {
		t.Errorf("read %+v, usual %t, dry run %t", r, ok, dryRun)
	}
}

func TestAllowedIsAnAdmissionReview(t *testing.T) {
	patch := []byte(`[{"op":"add","path":"/x","value":"\"<é"}]`)
	text := fastpath.AppendReview(
		nil, "u-1", fastpath.AppendResult(nil, patch, []string{`memfit: "quoted"`, "second\nline"}),
	)
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if r := got.Response; r == nil || r.UID != "u-1" || !r.Allowed || !bytes.Equal(r.Patch, patch) ||
		*r.PatchType != admissionv1.PatchTypeJSONPatch || len(r.Warnings) != 2 || r.Warnings[1] != "second\nline" {
		t.Errorf("answer %s reads as %+v", text, got.Response)
	}
	if err := json.Unmarshal(fastpath.AppendReview(nil, "u-2", fastpath.AppendResult(nil, nil, nil)), &got); err != nil ||
		got.Response.UID != "u-2" {
		t.Errorf("an answer without patch: %v, %+v", err, got.Response)
	}
}

// TestTemplate: pods with one template read alike. Each golden pod is changed at every place of its spec, one at a
// time.
func TestTemplate(t *testing.T) {
	of := func(object []byte) (template string, pod corev1.Pod, outline pod.Outline, usual bool) {
		r, ok := fastpath.Read(new(boundedjson.Scanner), around(object))
		text, dryRun, ok2 := r.AppendTemplate(nil)
		outline, ok3 := r.Rest(text, &pod)
		text = r.AppendAnnotations(text, "memfit.dev/")
		if !ok || ok2 && !dryRun {
			t.Fatalf("read %t, template %t (dry run %t): %s", ok, ok2, dryRun, object)
		}
		if pod.Spec.Volumes == nil { // see read
			for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
				for i := range list {
					list[i].VolumeMounts = nil
				}
			}
		}
		return string(text), pod, outline, ok2 && ok3
	}
	same, changed := 0, 0
	for name, object := range pods(t) {
		var tree map[string]any
		if err := json.Unmarshal(object, &tree); err != nil {
			t.Fatal(err)
		}
		asCreated(tree)
		object, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		template, pod, outline, usual := of(object)
		if !usual {
			t.Fatalf("%s: taken for unusual", name)
		}
		spec, _ := tree["spec"].(map[string]any)
		everyChange(spec, func() {
			other, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			var valid corev1.Pod
			if json.Unmarshal(other, &valid) != nil {
				return // a number where text belongs, and the like
			}
			otherTemplate, otherPod, otherOutline, usual := of(other)
			if otherTemplate != template || !usual {
				changed++
				return
			}
			same++
			if diff := cmp.Diff(pod, otherPod) + cmp.Diff(outline, otherOutline); diff != "" {
				t.Errorf("%s: one template, two pods:\n%s", name, diff)
			}
		})
	}
	if same < 50 || changed < 1000 {
		t.Errorf("%d changes kept the template and %d did not: that is too few to mean anything", same, changed)
	}
	t.Logf("%d changes kept the template, %d did not", same, changed)
}

// asCreated adds what a pod has besides when it reaches a webhook.
func asCreated(pod map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(
		volumes, map[string]any{"name": "kube-api-access-x2b4c", "projected": map[string]any{"defaultMode": 420}},
		map[string]any{"name": "scratch", "emptyDir": map[string]any{}},
	)
	spec["tolerations"] = []any{map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}}
	spec["serviceAccountName"], spec["priority"] = "web", 0
	list, _ := spec["containers"].([]any)
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			mounts, _ := c["volumeMounts"].([]any)
			c["volumeMounts"] = append(mounts, map[string]any{"name": "kube-api-access-x2b4c", "readOnly": true})
		}
	}
}

// everyChange changes a tree at one place after the other, asks, and changes it back.
func everyChange(tree map[string]any, ask func()) {
	try := func(set func(any), old any, news ...any) {
		for _, v := range news {
			set(v)
			ask()
		}
		set(old)
	}
	var visit func(set func(any), value any)
	visit = func(set func(any), value any) {
		switch v := value.(type) {
		case string:
			try(set, v, "changed", v+"x", "1Mi", "Memory")
		case float64:
			try(set, v, v+1)
		case bool:
			try(set, v, !v)
		case []any:
			try(set, v, v[:len(v)/2], append(slices.Clip(v), v...))
			for i := range v {
				visit(func(x any) { v[i] = x }, v[i])
			}
		case map[string]any:
			try(set, v, map[string]any{}, nil)
			for k := range v {
				old := v[k]
				delete(v, k)
				ask()
				v[k] = old
				visit(func(x any) { v[k] = x }, old)
			}
		}
	}
	for k := range tree {
		visit(func(x any) { tree[k] = x }, tree[k])
	}
}

// readBudget is what reading a review may take, per byte of it, both ways and the template.
var readBudget = budget.Budget{Bytes: 256 << 10, PerByte: 160, CPU: time.Second}

// FuzzPod: whatever comes, nothing panics or takes too much, and what is accepted of valid JSON is what the usual way
// gives.
func FuzzPod(f *testing.F) {
	for _, object := range pods(f) {
		f.Add(object)
		checkPod(f, object) // what is made once per process is no part of the budget
	}
	f.Add(
		[]byte(
			`{"metadata":{"labels":{"a":"\u00e9"}},"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"\n"}]}]}}`,
		),
	)
	f.Add(
		[]byte(
			`{"metadata":{},"spec":{"containers":[{"resources":{"limits":{"memory":1E400}}}],"volumes":[{"emptyDir":{"medium":"Memory","sizeLimit":"1e-999999999"}}]}}`,
		),
	)
	f.Fuzz(func(t *testing.T, object []byte) {
		budget.Check(t, readBudget, len(object), func() { checkPod(t, object) })
	})
}

func checkPod(t testing.TB, object []byte) {
	t.Helper()
	var got, usual corev1.Pod
	outline, ok := read(object, &got)
	if boundedjson.Check(object, &usual) != nil {
		return
	}
	strict, err := sigsjson.UnmarshalStrict(object, &usual)
	if !ok || err != nil || len(strict) > 0 { // invalid, or with keys twice that nobody reads: API servers send neither
		return
	}
	if want, err := pod.OutlineOf(object); err != nil || !cmp.Equal(want, outline, cmpopts.EquateEmpty()) {
		t.Errorf("outline of %s, -usual +got\n%s (%v)", object, cmp.Diff(want, outline, cmpopts.EquateEmpty()), err)
	}
	want, err := json.Marshal(needed(&usual))
	if err != nil {
		return
	}
	have, err := json.Marshal(&got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, have) {
		t.Errorf("usual %s\ngot %s", want, have)
	}
}

// FuzzReview: of a whole request, what is accepted to its end is what the usual way gives.
func FuzzReview(f *testing.F) {
	usual := around(
		[]byte(
			`{"metadata":{"name":"a","labels":{"b":"c"},"ownerReferences":[{"kind":"ReplicaSet","name":"d","controller":true}]},"spec":{"containers":[]}}`,
		),
	)
	checkReview(f, usual) // what is made once per process is no part of the budget
	f.Add(usual)
	f.Add(
		[]byte(
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":{"metadata":{},"spec":{}},"namespace":"n"}}`,
		),
	)
	f.Add(
		[]byte(
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","namespace":"n","object":{"metadata":{},"spec":{}},"dryRun":true}} x`,
		),
	)
	f.Fuzz(func(t *testing.T, body []byte) {
		budget.Check(t, readBudget, len(body), func() { checkReview(t, body) })
	})
}

func checkReview(t testing.TB, body []byte) {
	t.Helper()
	r, ok := fastpath.Read(new(boundedjson.Scanner), body)
	if !ok {
		return
	}
	_, dryRun, ok := rest(r, new(corev1.Pod))
	var usual admissionv1.AdmissionReview
	if !ok || boundedjson.Decode(body, &usual) != nil || usual.Request == nil {
		return
	}
	if uid, known := fastpath.UID(body); !known || uid != r.UID {
		t.Errorf("UID %q (%t), in the review %q", uid, known, r.UID)
	}
	q := usual.Request
	var meta metav1.PartialObjectMetadata
	if boundedjson.Decode(q.Object.Raw, &meta) != nil {
		return
	}
	if q.UID != r.UID || q.Namespace != r.Namespace || (q.DryRun != nil && *q.DryRun) != dryRun {
		t.Errorf("read %q %q %t, the usual way %q %q %v", r.UID, r.Namespace, dryRun, q.UID, q.Namespace, q.DryRun)
	}
	if diff := cmp.Diff(neededMeta(&meta.ObjectMeta), r.Meta, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("metadata -usual +got\n%s", diff)
	}
}

// FuzzTemplate: two pods with one template are read alike, both ways. The second pod is the first with a piece put in,
// cut out or doubled, which is what somebody would do who wants his own pod to be taken for another's.
func FuzzTemplate(f *testing.F) {
	add := func(object, piece string, at string) {
		f.Add([]byte(object), uint16(strings.Index(object, at)), uint16(0), []byte(piece))
	}
	const pod = `{"metadata":{},"spec":{"volumes":[{"emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},{"emptyDir":{"medium":"Memory","sizeLimit":"2Mi"}}],` +
		`"containers":[{"name":"a","volumeMounts":[{"name":"v"}]}]}}`
	add(pod, `"volumes":[],`, `"volumes"`)
	add(pod, `],"volumes":[`, `],"containers"`)
	add(strings.Replace(pod, `},{"emptyDir"`, `}  {"emptyDir"`, 1), `],"volumes":[`, ` {"emptyDir"`)
	add(pod, `{"name":"x"},`, `{"name":"v"`)
	add(pod, `"nodeName":"x",`, `"containers"`)
	add(pod, `"containers":[],`, `"containers"`)
	at := uint16(strings.Index(pod, `,{"emptyDir"`))
	f.Add([]byte(pod), at, uint16(1), []byte(`],"volumes":[`)) // two lists instead of one
	for _, object := range pods(f) {
		checkTemplates(f, object, object) // what is made once per process is no part of the budget
		f.Add(object, uint16(len(object)/2), uint16(3), []byte(`,"x":1`))
	}
	f.Fuzz(func(t *testing.T, object []byte, at, cut uint16, piece []byte) {
		start := min(int(at), len(object))
		end := min(start+int(cut), len(object))
		other := slices.Concat(object[:start], piece, object[end:])
		budget.Check(t, readBudget, len(object)+len(other), func() { checkTemplates(t, object, other) })
	})
}

func checkTemplates(t testing.TB, object, other []byte) {
	t.Helper()
	template := func(object []byte) ([]byte, corev1.Pod, pod.Outline, bool) {
		r, ok := fastpath.Read(new(boundedjson.Scanner), around(object))
		if !ok {
			return nil, corev1.Pod{}, pod.Outline{}, false
		}
		text, _, ok := r.AppendTemplate(nil)
		text = r.AppendAnnotations(text, "memfit.dev/")
		var pod corev1.Pod
		outline, usual := read(object, &pod)
		pod.ObjectMeta = metav1.ObjectMeta{}
		return text, pod, outline, ok && usual
	}
	one, pod, outline, ok := template(object)
	two, otherPod, otherOutline, ok2 := template(other)
	if !ok || !ok2 || !bytes.Equal(one, two) {
		return
	}
	if diff := cmp.Diff(pod, otherPod) + cmp.Diff(outline, otherOutline); diff != "" {
		t.Errorf("one template, two pods:\n%s\n%s\n%s", object, other, diff)
	}
	var usual, otherUsual corev1.Pod
	if boundedjson.Decode(object, &usual) != nil || boundedjson.Decode(other, &otherUsual) != nil {
		return
	}
	want, have := needed(&usual), needed(&otherUsual)
	want.ObjectMeta, have.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}
	if diff := cmp.Diff(want, have, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("one template, the usual way two pods:\n%s\n%s\n%s", object, other, diff)
	}
}
