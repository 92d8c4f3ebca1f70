// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/golden"
)

var now = time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)

func shop(t *testing.T) *Inventory {
	t.Helper()
	return shopWith(t, func(*v1alpha1.MemorySnapshot) {})
}

// shopWith changes the snapshots first.
func shopWith(t *testing.T, change func(*v1alpha1.MemorySnapshot)) *Inventory {
	t.Helper()
	text, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Pods            []corev1.Pod
		Snapshots       []v1alpha1.MemorySnapshot
		Recommendations []v1alpha1.MemoryRecommendation
		Used            []struct {
			Namespace, Pod, Container string
			Use                       resource.Quantity
		}
	}
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatal(err)
	}
	all := New(RecordsOf(in.Recommendations))
	for i := range in.Pods {
		in.Pods[i].UID = types.UID(in.Pods[i].Name)
		all.AddPod(&in.Pods[i])
	}
	for _, u := range in.Used {
		all.AddUse(u.Namespace, u.Pod, u.Container, memory.FromQuantity(u.Use))
	}
	for i := range in.Snapshots {
		in.Snapshots[i].OwnerReferences = []metav1.OwnerReference{{UID: types.UID(in.Snapshots[i].Name)}}
		change(&in.Snapshots[i])
		all.AddSnapshot(&in.Snapshots[i])
	}
	return all
}

func TestTop(t *testing.T) {
	all := shop(t).Containers()
	Sort(all, "use")
	var out bytes.Buffer
	if err := WriteTop(&out, all, listing.Options{Namespaces: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "top.txt", out.String())
	out.Reset()
	if err := WriteTop(&out, all, listing.Options{Namespaces: true, NoHeaders: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(out.String(), "\n")
	if lines != len(all) || !strings.HasPrefix(out.String(), all[0].Namespace+" ") {
		t.Errorf("without headers, %d containers are\n%s", len(all), out.String())
	}
}

// TestAnotherNodesSnapshot: an agent may write a snapshot under the name of any pod; that of the pod's node counts, and
// only if it is of this very pod.
func TestAnotherNodesSnapshot(t *testing.T) {
	read := func(in *Inventory) (parts int) {
		for _, c := range in.Containers() {
			if c.Parts != nil {
				parts++
			}
		}
		return parts
	}
	if read(shop(t)) == 0 {
		t.Fatal("no container has parts")
	}
	if n := read(shopWith(t, func(s *v1alpha1.MemorySnapshot) { s.Status.NodeName = "node-z" })); n > 0 {
		t.Errorf("%d containers have parts that another node's agent wrote", n)
	}
	if n := read(shopWith(t, func(s *v1alpha1.MemorySnapshot) { s.OwnerReferences[0].UID = "replaced" })); n > 0 {
		t.Errorf("%d containers have parts of an earlier pod that had their pod's name", n)
	}
}

// TestPartsAddUp: what the columns say is what is resident, also of a part that this program does not know.
func TestPartsAddUp(t *testing.T) {
	var sum memory.Bytes
	p := shop(t).Containers()[0].Parts
	for _, q := range []resource.Quantity{p.Heap, p.Free, p.Native, p.Files, p.Unexplained} {
		sum += memory.FromQuantity(q)
	}
	if sum != 476*memory.MiB || p.Unexplained.String() != "15Mi" {
		t.Errorf("the columns add up to %s, %s of it unexplained", sum, p.Unexplained.String())
	}
}

// TestWhatMemfitSetSaysNothing: a GOMEMLIMIT that the webhook wrote is not a sign that Go runs, and memfit needs no
// profile.
func TestWhatMemfitSetSaysNothing(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)},
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "shop/web", Env: []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "377487360"}},
		}}},
	}
	title := func() string {
		in := New(Records{})
		in.AddPod(&pod)
		all := in.Containers()
		return fmt.Sprint(all[0].Runtime.Title, " ", len(Profiles(Workloads(all, now))))
	}
	if got := title(); got != "Go 1" {
		t.Errorf("a variable of its owner: %s", got)
	}
	pod.Labels = map[string]string{"app.kubernetes.io/name": "memfit"}
	if got := title(); got != "Go 0" {
		t.Errorf("a pod of memfit: %s", got)
	}
	pod.Labels, pod.Annotations = nil, map[string]string{
		v1alpha1.InjectedAnnotation: `{"v":1,"profile":"MemoryProfile/p",` +
			`"containers":{"app":{"set":{"GOMEMLIMIT":"377487360"}}}}`,
	}
	if got := title(); got != " 0" {
		t.Errorf("a variable of memfit: %s", got)
	}
}

func TestSort(t *testing.T) {
	for by, want := range map[string]string{
		"use": "orders-0", "share": "web-6d4cf56db6-aaaaa", "free": "web-6d4cf56db6-aaaaa", "name": "orders-0",
	} {
		all := shop(t).Containers()
		slices.Reverse(all)
		if Sort(all, by); all[0].Pod != want {
			t.Errorf("by %s the first is %s, want %s", by, all[0].Pod, want)
		}
	}
}

func TestScan(t *testing.T) {
	all := Workloads(shop(t).Containers(), now)
	var out bytes.Buffer
	if err := WriteScan(&out, all, listing.Options{Namespaces: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "scan.txt", out.String())
}

// TestAKindOfTwoGroups: a Job of Volcano is another workload than the Job of Kubernetes that has its name.
func TestAKindOfTwoGroups(t *testing.T) {
	all := New(Records{})
	for _, group := range []string{"batch.volcano.sh/v1alpha1", "batch/v1"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		pod.Namespace, pod.Name = "ml", "train-"+strings.ReplaceAll(group, "/", "-")
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: group, Kind: "Job", Name: "train", Controller: new(true)},
		}
		all.AddPod(pod)
	}
	var out bytes.Buffer
	names, err := listing.Parse(listing.Name, listing.OfList)
	if err == nil {
		err = WriteScan(&out, Workloads(all.Containers(), now), listing.Options{Format: names})
	}
	if want := "job.batch.volcano.sh/train\njob.batch/train\n"; err != nil || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out.String(), want)
	}
}

// TestProfiles: those that are written are profiles, for those that have none; what a pod's creator made up becomes no
// path and no command.
func TestProfiles(t *testing.T) {
	var all strings.Builder
	for _, f := range Profiles(Workloads(shop(t).Containers(), now)) {
		all.WriteString("=== " + f.Path + "\n" + f.Text)
		var p v1alpha1.MemoryProfile
		if err := yaml.UnmarshalStrict([]byte(f.Text), &p); err != nil || p.Name+".yaml" != filepath.Base(f.Path) {
			t.Errorf("%s: %v, named %s", f.Path, err, p.Name)
		}
	}
	golden.Check(t, "profiles.txt", all.String())
	if strings.Contains(all.String(), "passwd") || strings.Contains(all.String(), "rm") {
		t.Errorf("a forged owner is in\n%s", all.String())
	}
}

// TestProfilesOfOneName: two workloads with several runtimes each have a profile of their own, also when they have one
// name.
func TestProfilesOfOneName(t *testing.T) {
	var all []Workload
	for kind, runtimes := range map[string][]string{"Deployment": {"JVM", "NodeJS"}, "StatefulSet": {"Go", "Python"}} {
		for _, runtime := range runtimes {
			all = append(all, Workload{Container: Container{
				Namespace: "shop", Kind: kind, Workload: "web", Name: strings.ToLower(runtime), Runtime: Runtime{Type: runtime},
			}})
		}
	}
	files := Profiles(all)
	if len(files) != 2 || files[0].Path != "shop/statefulset-web.yaml" || files[1].Path != "shop/web.yaml" ||
		!strings.Contains(files[0].Text, `{name: "python"`) || !strings.Contains(files[1].Text, `{name: "nodejs"`) {
		t.Errorf("%+v", files)
	}
}

func TestOwner(t *testing.T) {
	born := time.Unix(29401445*60, 0)
	for job, want := range map[string]string{
		"report-29401445": "CronJob report", "report-29401000": "CronJob report", "report-12345678": "Job report-12345678",
		"report": "Job report", "29401445": "Job 29401445", "report-99999999999999999999": "Job report-99999999999999999999",
	} {
		pod := &corev1.Pod{}
		pod.CreationTimestamp = metav1.NewTime(born.Add(3 * time.Second))
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: new(true)}}
		if owner := Owner(pod); owner.Kind+" "+owner.Name != want {
			t.Errorf("%s: %s, want %s", job, owner, want)
		}
	}
}
