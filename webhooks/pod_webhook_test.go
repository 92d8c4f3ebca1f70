// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

const heapFlag = "--max-old-space-size="

// created creates a pod and returns what the API server made of it.
func created(pod *corev1.Pod, opts ...client.CreateOption) *corev1.Pod {
	GinkgoHelper()
	Expect(api.Create(ctx, pod, opts...)).To(Succeed())
	return pod
}

// taskRun is the metadata of a TaskRun.
func taskRun(name string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

// failed makes a pod one whose container was OOM-killed.
func failed(pod *corev1.Pod) {
	GinkgoHelper()
	now := metav1.NewTime(time.Now())
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137, StartedAt: now, FinishedAt: now, ContainerID: "containerd://0",
		}},
	}}
	Expect(api.Status().Update(ctx, pod)).To(Succeed())
}

func envOf(pod *corev1.Pod) map[string]string {
	env := map[string]string{}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if c.Name == "app" {
			for _, v := range c.Env {
				env[v.Name] = v.Value
			}
		}
	}
	return env
}

var _ = Describe("A pod", func() {
	node := func(ns, name string, edits ...build.ContainerOption) *build.PodWrapper {
		return build.Pod(ns, name).Container(
			"app", append([]build.ContainerOption{build.Limit("512Mi"), build.Command("node", "server.js")}, edits...)...,
		)
	}
	injected := HaveKeyWithValue("NODE_OPTIONS", ContainSubstring(heapFlag))

	Describe("is governed", func() {
		It("by annotation on its template", func() {
			ns := namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
			pod := created(node(ns, "web").Annotate(v1alpha1.ProfileAnnotation, "web").Obj())
			Expect(envOf(pod)).To(injected)
			Expect(pod.Annotations).To(HaveKey(v1alpha1.InjectedAnnotation))
		})

		It("by annotation on its Deployment, through a ReplicaSet that memfit has never seen before", func() {
			ns := namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
			deployment := build.Deployment(ns, "web", v1alpha1.ProfileAnnotation, "web")
			expect.Applied(ctx, api, deployment)
			set := build.ReplicaSet(deployment, "5d4f8c7b9")
			expect.Applied(ctx, api, set)
			pod := created(node(ns, "web-5d4f8c7b9-x7k2p").OwnedBy(set, "apps/v1", "ReplicaSet").Obj())
			Expect(envOf(pod)).To(injected)
		})

		It("by annotation on its CronJob", func() {
			ns := namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
			cron := build.CronJob(ns, "report", v1alpha1.ProfileAnnotation, "web")
			expect.Applied(ctx, api, cron)
			job := build.Job(ns, "report-29380", cron)
			expect.Applied(ctx, api, job)
			pod := created(
				node(ns, "report-29380-abcde").OwnedBy(job, "batch/v1", "Job").RestartPolicy(corev1.RestartPolicyNever).Obj(),
			)
			Expect(envOf(pod)).To(injected)
		})

		It("by annotation on its namespace", func() {
			ns := namespace(v1alpha1.ProfileAnnotation, "web")
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
			Eventually(func(g Gomega) {
				pod := node(ns, "web").Obj()
				g.Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
				g.Expect(envOf(pod)).To(injected)
			}).MustPassRepeatedly(len(replicas)).WithTimeout(5 * time.Second).Should(Succeed())
		})

		It("by the profile's selector, of its namespace or of the cluster", func() {
			ns := namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Selecting("app", "web")))
			Expect(envOf(created(node(ns, "web").Label("app", "web").Obj()))).To(injected)

			profiled(build.ClusterProfile("everywhere-"+ns, v1alpha1.RuntimeNodeJS, build.Selecting("team", ns)))
			Expect(envOf(created(node(ns, "other").Label("team", ns).Obj()))).To(injected)
		})
	})

	It("is created with the raised limit as soon as the API server has the kill of its predecessor", func() {
		ns := namespace()
		profiled(build.Profile(ns, "steps", v1alpha1.RuntimeAuto, build.Sizing(v1alpha1.SizingOnCreate)))
		step := func(task string, run int) *corev1.Pod {
			name := fmt.Sprintf("ci-%d-%s", run, task)
			return build.Pod(ns, name+"-pod").Annotate(v1alpha1.ProfileAnnotation, "steps").
				Container("step-main", build.Limit("64Mi"), build.Request("64Mi")).RestartPolicy(corev1.RestartPolicyNever).
				Label("tekton.dev/pipeline", "build", "tekton.dev/pipelineTask", task, "tekton.dev/taskRun", name).
				OwnedBy(taskRun(name), "tekton.dev/v1", "TaskRun").Obj()
		}
		limit := func(pod *corev1.Pod) int64 { return pod.Spec.Containers[0].Resources.Limits.Memory().Value() }
		died := 0
		for run := range 5 {
			began := time.Now()
			pod := created(step("unit", run))
			GinkgoWriter.Printf("created in %s\n", time.Since(began))
			if limit(pod) >= 100<<20 {
				continue
			}
			died++
			failed(pod)
		}
		Expect(died).To(Equal(1))
		Expect(limit(created(step("lint", 0)))).To(BeEquivalentTo(64 << 20))
	})

	Describe("is governed by what its profile inherits", func() {
		heap := func(percent int32) func(*v1alpha1.MemoryProfileSpec) {
			return func(s *v1alpha1.MemoryProfileSpec) { s.Role, s.Tuning.HeapPercent = v1alpha1.RoleDefaults, &percent }
		}
		given := func(ns, name string) map[string]string {
			GinkgoHelper()
			return envOf(created(build.Pod(ns, name).Container("app", build.Limit("100Mi")).Label("app", "web").Obj()))
		}

		It("from the cluster, then from its namespace, although its template is known", func() {
			ns := namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeGo, build.Selecting("app", "web")))
			Expect(given(ns, "before")).To(HaveKeyWithValue("GOMEMLIMIT", "94371840"))
			profiled(build.ClusterProfile("platform", "", heap(50)))
			Expect(given(ns, "cluster")).To(HaveKeyWithValue("GOMEMLIMIT", "52428800"))
			Expect(given(ns, "cluster-2")).To(HaveKeyWithValue("GOMEMLIMIT", "52428800"))
			team := build.Profile(ns, "team", "", heap(60))
			profiled(team)
			Expect(given(ns, "team")).To(HaveKeyWithValue("GOMEMLIMIT", "62914560"))
			edited := build.Profile(ns, "team", "", heap(70))
			profiled(edited)
			Expect(given(ns, "edited")).To(HaveKeyWithValue("GOMEMLIMIT", "73400320"))
			before := changes()
			expect.Deleted(ctx, api, edited)
			Eventually(changes).WithTimeout(10 * time.Second).Should(BeNumerically(">", before))
			Expect(given(ns, "without")).To(HaveKeyWithValue("GOMEMLIMIT", "52428800"))
		})

		It("and a second profile with role Defaults is refused", func() {
			ns := namespace()
			profiled(build.Profile(ns, "team", "", heap(60)))
			Expect(api.Create(ctx, build.Profile(ns, "other", "", heap(70)))).To(
				MatchError(ContainSubstring("MemoryProfile " + ns + "/team already has role: Defaults")),
			)
		})

		It("and is admitted, whatever clashes", func() {
			ns := namespace()
			profiled(build.Profile(
				ns, "web", v1alpha1.RuntimeGo, build.Selecting("app", "web"), build.Sizing(v1alpha1.SizingOnCreate),
				func(s *v1alpha1.MemoryProfileSpec) {
					s.Sizing.Limit = &v1alpha1.Bounds{Min: v1alpha1.NewMemoryQuantity(resource.MustParse("2Gi"))}
				},
			))
			profiled(build.Profile(ns, "team", "", heap(60), func(s *v1alpha1.MemoryProfileSpec) {
				s.Sizing.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity(resource.MustParse("1Gi"))}
			}))
			Expect(given(ns, "web")).To(HaveKeyWithValue("GOMEMLIMIT", "62914560"))
		})
	})

	Describe("gets what the older of two profiles says that choose it", func() {
		It("with a warning", func() {
			ns := namespace()
			profiled(build.Profile(ns, "one", v1alpha1.RuntimeNodeJS, build.Selecting("app", "web")))
			profiled(build.Profile(ns, "two", v1alpha1.RuntimeGo, build.Selecting("app", "web")))
			warnings.taken()
			pod := created(node(ns, "web").Label("app", "web").Obj())
			Expect(envOf(pod)).To(HaveKeyWithValue("NODE_OPTIONS", ContainSubstring(heapFlag)))
			Expect(warnings.taken()).To(ConsistOf(And(HavePrefix("memfit: "), ContainSubstring("one"), ContainSubstring("two"))))
		})
	})

	Describe("is left as it came", func() {
		It("when nobody governs it", func() {
			ns := namespace()
			warnings.taken()
			pod := created(node(ns, "web").Obj())
			Expect(envOf(pod)).To(BeEmpty())
			Expect(pod.Annotations).To(BeEmpty())
			Expect(warnings.taken()).To(BeEmpty())
		})

		It("when it opts out, whatever selects it", func() {
			ns := namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Selecting("app", "web")))
			pod := created(node(ns, "web").Label("app", "web").Annotate(v1alpha1.InjectAnnotation, "false").Obj())
			Expect(envOf(pod)).To(BeEmpty())
		})

		It("when its profile does not exist, and says so", func() {
			ns := namespace()
			warnings.taken()
			created(node(ns, "web").Annotate(v1alpha1.ProfileAnnotation, "wbe").Obj())
			Expect(warnings.taken()).To(ConsistOf(ContainSubstring("wbe")))
		})
	})

	Describe("keeps what its owner wrote", func() {
		var ns string
		BeforeEach(func() {
			ns = namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
		})

		It("flag by flag", func() {
			pod := created(
				node(
					ns, "web", build.Env("NODE_OPTIONS", "--require ./trace.js"),
				).Annotate(v1alpha1.ProfileAnnotation, "web").Obj(),
			)
			Expect(envOf(pod)).To(
				HaveKeyWithValue("NODE_OPTIONS", And(ContainSubstring("--require ./trace.js"), ContainSubstring(heapFlag))),
			)
		})

		It("when a value comes from somewhere else, and its neighbors keep their places", func() {
			fromField := corev1.EnvVar{
				Name: "NODE_OPTIONS",
				ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['opts']"},
				},
			}
			pod := created(
				node(
					ns, "web", build.Env("A", "1"), build.EnvVar(fromField), build.Env("B", "$(A)"),
				).Annotate(v1alpha1.ProfileAnnotation, "web").Obj(),
			)
			Expect(pod.Spec.Containers[0].Env[:3]).To(
				Equal([]corev1.EnvVar{{Name: "A", Value: "1"}, fromField, {Name: "B", Value: "$(A)"}}),
			)
		})

		It("when names may come from a ConfigMap", func() {
			pod := created(node(ns, "web", build.EnvFrom("settings")).Annotate(v1alpha1.ProfileAnnotation, "web").Obj())
			Expect(envOf(pod)).NotTo(HaveKey("NODE_OPTIONS"))
			Expect(pod.Annotations).To(HaveKey(v1alpha1.InjectedAnnotation), "the reason is on record")
		})
	})

	It("is the same when it is created again from itself", func() {
		ns := namespace()
		profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
		first := created(node(ns, "web").Annotate(v1alpha1.ProfileAnnotation, "web").Obj())
		again := first.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: "again", Annotations: first.Annotations}
		again.Status = corev1.PodStatus{}
		created(again)
		Expect(again.Spec.Containers[0].Env).To(Equal(first.Spec.Containers[0].Env))
		Expect(again.Spec.Containers[0].ResizePolicy).To(Equal(first.Spec.Containers[0].ResizePolicy))
		Expect(again.Annotations).To(Equal(first.Annotations))
	})

	It("is spoken of once, although the API server asks twice", func() {
		ns := namespace()
		profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
		warnings.taken()
		before := total("memfit_injections_total")
		limitless := build.Pod(ns, "web").Container("app").Annotate(v1alpha1.ProfileAnnotation, "web")
		created(limitless.Obj())
		Expect(warnings.taken()).To(ConsistOf(ContainSubstring("no memory limit")))
		Expect(total("memfit_injections_total")).To(Equal(before + 1))
	})

	It("is answered for in a dry run, without being counted", func() {
		ns := namespace()
		profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
		before := total("memfit_injections_total")
		pod := created(node(ns, "web").Annotate(v1alpha1.ProfileAnnotation, "web").Obj(), client.DryRunAll)
		Expect(envOf(pod)).To(injected)
		Expect(total("memfit_injections_total")).To(Equal(before))
		expect.Missing(ctx, api, ns, "web", &corev1.Pod{})
	})

	Describe("gets a size", func() {
		recommendedFor := func(
			ref memory.WorkloadRef, limit string, owner ...metav1.OwnerReference,
		) *v1alpha1.MemoryRecommendation {
			rec := &v1alpha1.MemoryRecommendation{}
			rec.Namespace, rec.Name, rec.OwnerReferences = ref.Namespace, policy.RecordName(ref), owner
			rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
			rec.Status.Profile = v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}
			expect.Applied(ctx, api, rec)
			q := resource.MustParse(limit)
			rec.Status.Containers = []v1alpha1.ContainerRecommendation{
				{Container: "app", Decision: "Increase", Summary: "test", NewPods: &v1alpha1.Size{Limit: &q, Request: &q}},
			}
			Expect(api.Status().Update(ctx, rec)).To(Succeed())
			return rec
		}
		recommended := func(ns, workload, limit string, owner ...metav1.OwnerReference) *v1alpha1.MemoryRecommendation {
			ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: ns, Name: workload}
			return recommendedFor(ref, limit, owner...)
		}
		// owned is a ReplicaSet whose pods a profile of this mode governs.
		owned := func(ns string, mode v1alpha1.SizingMode) *appsv1.ReplicaSet {
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Sizing(mode)))
			deployment := build.Deployment(ns, "web", v1alpha1.ProfileAnnotation, "web")
			expect.Applied(ctx, api, deployment)
			set := build.ReplicaSet(deployment, "5d4f8c7b9")
			expect.Applied(ctx, api, set)
			return set
		}
		// sized waits until a new pod of the set would get a limit, and returns that pod.
		sized := func(set *appsv1.ReplicaSet, want string) *corev1.Pod {
			GinkgoHelper()
			var pod *corev1.Pod
			Eventually(func(g Gomega) {
				pod = node(set.Namespace, "web-1").OwnedBy(set, "apps/v1", "ReplicaSet").Obj()
				g.Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
				g.Expect(pod.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal(want))
			}).MustPassRepeatedly(len(replicas)).WithTimeout(5 * time.Second).Should(Succeed())
			return pod
		}
		It("of the class of its node, for the pod of a DaemonSet", func() {
			ns := namespace()
			const label = "example.com/size"
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Sizing(v1alpha1.SizingOnCreate),
				func(s *v1alpha1.MemoryProfileSpec) { s.Identity = &v1alpha1.IdentitySpec{NodeClass: label} }))
			daemons := build.DaemonSet(ns, "log")
			expect.Applied(ctx, api, daemons)
			for name, size := range map[string]string{"small": "small", "large": "large", "bare": ""} {
				of := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + name}}
				if size != "" {
					of.Labels = map[string]string{label: size}
				}
				expect.Applied(ctx, api, of)
			}
			for class, limit := range map[string]string{"small": "640Mi", "large": "1Gi", "": "768Mi"} {
				recommendedFor(memory.WorkloadRef{
					APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: ns, Name: "log", NodeClass: class,
				}, limit, build.ControllerRef(daemons, "apps/v1", "DaemonSet"))
			}
			for name, want := range map[string]string{
				"small": "640Mi", "large": "1Gi", "bare": "768Mi", "unknown": "768Mi", "": "768Mi",
			} {
				Eventually(func(g Gomega) {
					pod := node(ns, "log-1").OwnedBy(daemons, "apps/v1", "DaemonSet").Annotate(v1alpha1.ProfileAnnotation, "web").Obj()
					if name != "" { // as the DaemonSet controller writes it
						pod.Spec.Affinity = identity.PinnedTo(ns + "-" + name)
					}
					g.Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
					g.Expect(pod.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal(want))
				}).MustPassRepeatedly(len(replicas)).WithTimeout(5*time.Second).Should(Succeed(), "on node %q", name)
			}
		})

		for _, tc := range []struct {
			mode v1alpha1.SizingMode
			want string
		}{
			{v1alpha1.SizingRecommend, "512Mi"}, {v1alpha1.SizingDisabled, "512Mi"},
			{v1alpha1.SizingOnCreate, "768Mi"}, {v1alpha1.SizingInPlace, "768Mi"}, {v1alpha1.SizingInPlaceOrEvict, "768Mi"},
		} {
			It("of "+tc.want+" with sizing.mode "+string(tc.mode), func() {
				set := owned(namespace(), tc.mode)
				recommended(set.Namespace, "web", "768Mi", set.OwnerReferences...)
				Expect(envOf(sized(set, tc.want))).To(injected)
			})
		}
		It("of its own, not what was recorded of an earlier Deployment of that name or of nobody", func() {
			set := owned(namespace(), v1alpha1.SizingOnCreate)
			rec := recommended(set.Namespace, "web", "768Mi", set.OwnerReferences...)
			sized(set, "768Mi")
			rec.OwnerReferences[0].UID = "of-an-earlier-one"
			Expect(api.Update(ctx, rec)).To(Succeed())
			Expect(envOf(sized(set, "512Mi"))).To(injected)
			rec.OwnerReferences = set.OwnerReferences
			Expect(api.Update(ctx, rec)).To(Succeed())
			sized(set, "768Mi")
			rec.OwnerReferences = nil
			Expect(api.Update(ctx, rec)).To(Succeed())
			sized(set, "512Mi")
		})
		It("no longer, but its settings, once another autoscaler steers its memory", func() {
			set := owned(namespace(), v1alpha1.SizingOnCreate)
			rec := recommended(set.Namespace, "web", "768Mi", set.OwnerReferences...)
			sized(set, "768Mi")
			rec.Status.Containers[0].NewPods = nil // as the controller writes it during a conflict
			Expect(api.Status().Update(ctx, rec)).To(Succeed())
			Expect(envOf(sized(set, "512Mi"))).To(injected)
		})
	})

	Describe("is admitted unchanged, with a warning and a count,", func() {
		var ns string
		BeforeEach(func() {
			ns = namespace()
			profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS))
			warnings.taken()
		})
		for name, do := range map[string]func(context.Context, client.Object) error{
			"when a lookup fails": func(context.Context, client.Object) error { return errors.New("injected by the test") },
			"when memfit panics":  func(context.Context, client.Object) error { panic("injected by the test") },
			"when a lookup hangs": func(ctx context.Context, _ client.Object) error {
				<-ctx.Done()
				return ctx.Err()
			},
		} {
			It(name, func() {
				lookups.during(do)
				before, began := errorCount(), time.Now()
				pod := created(node(ns, "web").Annotate(v1alpha1.ProfileAnnotation, "web").Obj())
				Expect(time.Since(began)).To(BeNumerically("<", 1500*time.Millisecond), "well within the webhook's timeout of 2s")
				Expect(envOf(pod)).To(BeEmpty())
				Expect(warnings.taken()).To(ContainElement(ContainSubstring("after an internal error")))
				Expect(errorCount()).To(BeNumerically(">", before))
			})
		}
	})
})

func errorCount() float64 { return total("memfit_injection_errors_total") }

// total sums a counter over its labels.
func total(metric string) float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var sum float64
	for _, f := range families {
		if f.GetName() == metric {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
