// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/labnode"
)

// Images of the lab's workloads.
const (
	nodeImage = "memfit.test/node:20"
	jdkImage  = "memfit.test/jdk:17"
	// oldJREImage has a JVM without the fix for JDK-8349988, and no compiler.
	oldJREImage = "memfit.test/old-jre:21"
	goImage     = "memfit.test/goprobe:dev"
)

// profileName is the name of each spec's profile, which is in the spec's own namespace.
const profileName = "p"

func profile(namespace string, spec v1alpha1.MemoryProfileSpec) *v1alpha1.MemoryProfile {
	return &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: profileName}, Spec: spec}
}

// workload returns a Deployment of one container with a memory limit, after the change.
func workload(namespace, image, limit string, command []string, change func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	one, grace := int32(1), int64(1)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{
						Name: "app", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
						Resources: corev1.ResourceRequirements{
							Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
						},
					}},
				},
			},
		},
	}
	if node := os.Getenv("E2E_NODE"); node != "" { // a second node of the lab
		labnode.Place(&d.Spec.Template.Spec, node)
	}
	if change != nil {
		change(d)
	}
	return d
}

func annotated(d *appsv1.Deployment) {
	d.Annotations = map[string]string{v1alpha1.ProfileAnnotation: profileName}
}

// pods returns the workload's pods that are not being deleted, oldest first.
func pods(ctx context.Context, namespace string) []corev1.Pod {
	var list corev1.PodList
	Expect(k8s.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": "web"})).To(Succeed())
	live := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(live, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return live
}

// runningPod waits until the workload has exactly one pod, and the pod is running.
func runningPod(ctx context.Context, namespace string) *corev1.Pod {
	GinkgoHelper()
	var pod corev1.Pod
	Eventually(func(g Gomega) {
		live := pods(ctx, namespace)
		g.Expect(live).To(HaveLen(1))
		pod = live[0]
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}).WithContext(ctx).Should(Succeed())
	return &pod
}

// replacePod deletes the pod and waits for its replacement.
func replacePod(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, pod)).To(Succeed())
	var next *corev1.Pod
	Eventually(func(g Gomega) {
		live := pods(ctx, pod.Namespace)
		g.Expect(live).To(HaveLen(1))
		g.Expect(live[0].UID).NotTo(Equal(pod.UID))
		next = &live[0]
	}).WithContext(ctx).Should(Succeed())
	return next
}

// edit changes an object and retries on conflict, because memfit may write its status at any time.
func edit(ctx context.Context, o client.Object, change func()) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return k8s.Update(ctx, o)
	})).To(Succeed())
}

func env(pod *corev1.Pod) map[string]string {
	values := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		values[e.Name] = e.Value
	}
	return values
}

func limitOf(pod *corev1.Pod) string {
	return pod.Spec.Containers[0].Resources.Limits.Memory().String()
}

func logs(ctx context.Context, pod *corev1.Pod) string {
	stream, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return err.Error()
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// recommendation returns the workload's recommendation, or an error while none exists.
func recommendation(ctx context.Context, namespace string) (*v1alpha1.MemoryRecommendation, error) {
	var rec v1alpha1.MemoryRecommendation
	err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "deployment-web"}, &rec)
	return &rec, err
}

func condition(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// plugin runs kubectl memfit and returns what it printed.
func plugin(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "kubectl-memfit", args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl memfit %v: %s", args, out)
	GinkgoWriter.Printf("$ kubectl memfit %v\n%s\n", args, out)
	return string(out)
}

func managersReady(ctx context.Context) (int, error) {
	var d appsv1.Deployment
	err := k8s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: managerName}, &d)
	return int(d.Status.ReadyReplicas), err
}

func managerPods(ctx context.Context) []corev1.Pod {
	var list corev1.PodList
	Expect(
		k8s.List(
			ctx, &list, client.InNamespace(systemNamespace), client.MatchingLabels{"control-plane": "controller-manager"},
		),
	).To(Succeed())
	return list.Items
}

// killManagers deletes every memfit pod without a grace period, and returns the pods.
func killManagers(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	now, killed := client.GracePeriodSeconds(0), managerPods(ctx)
	for _, p := range killed {
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, &p, now))).To(Succeed())
	}
	return killed
}

// killedAndReplaced kills every memfit pod and waits until new pods are ready. The Deployment's status is not enough:
// it counts the killed pods as ready until their kubelet has stopped them.
func killedAndReplaced(ctx context.Context) {
	GinkgoHelper()
	killed := killManagers(ctx)
	Eventually(func(g Gomega) {
		others := managerPods(ctx)
		g.Expect(others).To(HaveLen(2))
		for i := range others {
			g.Expect(killed).NotTo(ContainElement(HaveField("UID", others[i].UID)))
			g.Expect(others[i].Status.Conditions).To(
				ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))),
			)
		}
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
}

// restartManagers replaces both replicas with a rolling update, and waits until it is complete.
func restartManagers(ctx context.Context) {
	GinkgoHelper()
	patch := fmt.Appendf(
		nil, `{"spec":{"template":{"metadata":{"annotations":{"memfit.dev/restarted-by-e2e":%q}}}}}`, time.Now(),
	)
	d, err := clientset.AppsV1().Deployments(systemNamespace).Patch(
		ctx, managerName, types.MergePatchType, patch, metav1.PatchOptions{},
	)
	Expect(err).NotTo(HaveOccurred())
	rolledOut(ctx, d)
}

// withFlags adds flags to both replicas until the spec ends.
func withFlags(ctx context.Context, flags ...string) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: managerName}}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	before := d.Spec.Template.Spec.Containers[0].Args
	set := func(ctx context.Context, args []string) {
		text, err := json.Marshal(args)
		Expect(err).NotTo(HaveOccurred())
		patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":%s}]`, text)
		Expect(k8s.Patch(ctx, d, client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
		rolledOut(ctx, d)
	}
	DeferCleanup(func(ctx context.Context) { set(ctx, before) })
	set(ctx, slices.Concat(before, flags))
}

// rolledOut waits until both replicas run the Deployment's latest template.
func rolledOut(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()
	wanted := d.Generation
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(BeNumerically(">=", wanted))
		g.Expect([]int32{d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas}).To(Equal([]int32{2, 2, 2}))
		g.Expect(managerPods(ctx)).To(
			HaveLen(2), "a terminating replica remains the leader for some seconds, with its previous state",
		)
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
}

// dump prints the namespace's pods, logs, recommendations and Events, and memfit's last log lines.
func dump(ctx context.Context, namespace string) {
	var recs v1alpha1.MemoryRecommendationList
	var events corev1.EventList
	var list corev1.PodList
	inside := client.InNamespace(namespace)
	for _, l := range []client.ObjectList{&recs, &events, &list} {
		if err := k8s.List(ctx, l, inside); err != nil {
			GinkgoWriter.Println(err)
		}
	}
	for _, p := range list.Items {
		GinkgoWriter.Printf(
			"pod %s: %s annotations=%v env=%v status=%+v\n", p.Name, p.Status.Phase, p.Annotations, env(&p),
			p.Status.ContainerStatuses,
		)
		GinkgoWriter.Println(logs(ctx, &p))
	}
	for _, r := range recs.Items {
		GinkgoWriter.Printf("recommendation %s: %+v\n", r.Name, r.Status)
	}
	for _, e := range events.Items {
		GinkgoWriter.Printf("event %s %s/%s: %s\n", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
	}
	for _, p := range managerPods(ctx) {
		tail := strings.Split(logs(ctx, &p), "\n")
		GinkgoWriter.Printf("memfit %s:\n%s\n", p.Name, strings.Join(tail[max(0, len(tail)-60):], "\n"))
	}
}
