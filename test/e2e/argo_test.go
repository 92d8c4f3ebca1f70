// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
)

const (
	argoNamespace   = "argo"
	argoController  = "workflow-controller"
	argoWorkflowKey = "workflows.argoproj.io/workflow"
)

// argoManifests builds the manifests of a directory of Argo's source.
func argoManifests(source, folder string) []unstructured.Unstructured {
	GinkgoHelper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(
		filesys.MakeFsOnDisk(), filepath.Join(source, "manifests", folder),
	)
	Expect(err).NotTo(HaveOccurred())
	text, err := built.AsYaml()
	Expect(err).NotTo(HaveOccurred())
	return decodeManifests(text)
}

// startArgo runs the workflow controller until the container of specs ends. Unlike a release, it uses the lab's images
// and omits the API server of Argo.
func startArgo(ctx context.Context, source string) {
	GinkgoHelper()
	objects := slices.DeleteFunc(
		slices.Concat(
			argoManifests(source, "base/crds/minimal"), argoManifests(source, "cluster-install-no-crds"),
		),
		func(o unstructured.Unstructured) bool { return o.GetName() == "argo-server" },
	)
	for i := range objects {
		if objects[i].GetKind() == "Deployment" {
			changeContainer(&objects[i], func(c map[string]any) {
				c["image"], c["imagePullPolicy"] = "memfit.test/workflow-controller:dev", "Never"
				c["args"] = []any{"--executor-image=memfit.test/argoexec:dev", "--executor-image-pull-policy=Never"}
			})
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: argoNamespace}}
	DeferCleanup(func(ctx context.Context) {
		for _, o := range objects {
			Expect(
				client.IgnoreNotFound(k8s.Delete(ctx, o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))),
			).To(Succeed())
		}
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, ns))).To(Succeed())
	})
	Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, ns))).To(Succeed())
	apply(ctx, objects)
	Eventually(func(g Gomega) {
		var pods corev1.PodList
		g.Expect(
			k8s.List(ctx, &pods, client.InNamespace(argoNamespace), client.MatchingLabels{"app": argoController}),
		).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
		g.Expect(pods.Items[0].Status.ContainerStatuses).To(HaveLen(1))
		status := pods.Items[0].Status.ContainerStatuses[0]
		if w := status.State.Waiting; w != nil && w.Reason == "ErrImageNeverPull" {
			StopTrying("the image is not on the node: make load-argo").Now()
		}
		g.Expect(status.Ready).To(BeTrue(), "%+v", status.State)
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
}

// grantExecutorRights gives the workflow's pods the rights that the executor needs.
func grantExecutorRights(ctx context.Context, namespace string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "executor"}
	Expect(k8s.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"argoproj.io"}, Resources: []string{"workflowtaskresults"}, Verbs: []string{"create", "patch"},
	}}})).To(Succeed())
	Expect(k8s.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "default"}},
	})).To(Succeed())
}

// step returns a workflow template: a program that allocates the mebibytes under a limit of 64Mi, with retries.
func step(name string, mebibytes int) map[string]any {
	script := fmt.Sprintf("import time; x = bytearray(%d << 20); time.sleep(3)", mebibytes)
	return map[string]any{
		"name": name, "retryStrategy": map[string]any{"limit": 3},
		"container": map[string]any{
			"image": pythonImage, "imagePullPolicy": "Never", "command": []any{"python3", "-c", script},
			"resources": map[string]any{
				"requests": map[string]any{"memory": "64Mi"}, "limits": map[string]any{"memory": "64Mi"},
			},
		},
	}
}

// runWorkflow runs the workflow "build" and waits until it has succeeded. It returns the pods of each step, oldest
// first.
func runWorkflow(ctx context.Context, namespace string) map[string][]corev1.Pod {
	GinkgoHelper()
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"entrypoint": "all",
		"templates": []any{
			map[string]any{"name": "all", "dag": map[string]any{"tasks": []any{
				map[string]any{"name": "a", "template": "fit-model"}, map[string]any{"name": "b", "template": "lint"},
			}}},
			step("fit-model", 85), step("lint", 5),
		},
	}}}
	w.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"})
	w.SetNamespace(namespace)
	w.SetGenerateName("build-")
	Expect(k8s.Create(ctx, w)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w), w)).To(Succeed())
		phase, _, err := unstructured.NestedString(w.Object, "status", "phase")
		g.Expect(err).NotTo(HaveOccurred())
		message, _, _ := unstructured.NestedString(w.Object, "status", "message")
		if phase == "Failed" || phase == "Error" {
			StopTrying("the workflow has failed: " + message).Now()
		}
		g.Expect(phase).To(Equal("Succeeded"), message)
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())

	var list corev1.PodList
	Expect(
		k8s.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{argoWorkflowKey: w.GetName()}),
	).To(Succeed())
	steps := map[string][]corev1.Pod{}
	for _, name := range []string{"fit-model", "lint"} {
		for _, pod := range list.Items {
			if matched, _ := filepath.Match(w.GetName()+"-"+name+"-*", pod.Name); matched {
				steps[name] = append(steps[name], pod)
			}
		}
		slices.SortFunc(steps[name], func(a, b corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		for _, pod := range steps[name] {
			GinkgoWriter.Printf("%s %s: %s %s\n", pod.CreationTimestamp.Format(time.TimeOnly), pod.Name,
				mainLimit(&pod), mainEnd(&pod))
		}
	}
	return steps
}

// mainLimit returns the memory limit of the step's container.
func mainLimit(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == "main" {
			return c.Resources.Limits.Memory().String()
		}
	}
	return ""
}

// mainEnd returns how the step's container ended: "OOMKilled 137".
func mainEnd(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; s.Name == "main" && t != nil {
			return fmt.Sprintf("%s %d", t.Reason, t.ExitCode)
		}
	}
	return ""
}

// recommendationOf waits for the recommendation of the identity with the title.
func recommendationOf(ctx context.Context, namespace, title string) *v1alpha1.MemoryRecommendation {
	GinkgoHelper()
	var found v1alpha1.MemoryRecommendation
	Eventually(func(g Gomega) {
		var list v1alpha1.MemoryRecommendationList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		i := slices.IndexFunc(list.Items, func(r v1alpha1.MemoryRecommendation) bool {
			id := r.Status.Identity
			return id != nil && identity.Title(id.Platform, id.Values) == title
		})
		g.Expect(i).NotTo(Equal(-1), "%+v", list.Items)
		found = list.Items[i]
	}).WithContext(ctx).Should(Succeed())
	return &found
}

// Serial: the controller serves the whole cluster, and on a busy node the webhook gets the kill too late.
var _ = Describe("steps of workflows that Argo's own controller runs", Label("platforms"), Serial, Ordered, func() {
	namespace := inNamespace()

	BeforeAll(func(ctx SpecContext) {
		source := os.Getenv("ARGO_SOURCE")
		if source == "" {
			Skip("needs the images of Argo Workflows: make test-platforms")
		}
		startArgo(ctx, source)
	}, NodeTimeout(later*2))

	It("starts the retry of a killed step, and the next run's, with the raised limit", func(ctx SpecContext) {
		grantExecutorRights(ctx, *namespace)
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: argoWorkflowKey, Operator: metav1.LabelSelectorOpExists},
			}},
			Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingOnCreate},
		}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)

		By("running it for the first time: one step is killed, and its retry survives")
		first := runWorkflow(ctx, *namespace)
		Expect(first["fit-model"]).To(HaveLen(2))
		killed, retry := &first["fit-model"][0], &first["fit-model"][1]
		Expect([]string{mainLimit(killed), mainEnd(killed)}).To(Equal([]string{"64Mi", "OOMKilled 137"}))
		Expect(mainLimit(retry)).NotTo(Equal("64Mi"))
		Expect(mainEnd(retry)).To(Equal("Completed 0"))
		Expect(first["lint"]).To(HaveLen(1))

		By("running it again: no step is killed, and each has its own size")
		second := runWorkflow(ctx, *namespace)
		Expect(second["fit-model"]).To(HaveLen(1))
		Expect(mainLimit(&second["fit-model"][0])).To(Equal(mainLimit(retry)))
		Expect(second["lint"]).To(HaveLen(1))
		Expect(mainLimit(&second["lint"][0])).To(Equal("64Mi"))

		By("checking memfit's records and commands")
		rec := recommendationOf(ctx, *namespace, "argo: build/fit-model")
		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1), "%+v", rec.Status.RecentOOMKills)
		Expect(recommendationOf(ctx, *namespace, "argo: build/lint").Status.OOMKills).To(BeZero())
		status := plugin(ctx, "status", "-n", *namespace)
		Expect(status).To(And(ContainSubstring("argo: build/fit-model"), ContainSubstring("argo: build/lint")))
		Expect(plugin(ctx, "history", "argo: build/fit-model", "-n", *namespace)).To(ContainSubstring("OOM kill"))
	}, SpecTimeout(later*3))
})
