// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/goldenpods"
)

// notCreatable are cases that an API server refuses before anybody could inject, or whose outcome a cluster changes.
// Every other case must pass, so a pod that only memfit's patch makes invalid cannot hide here.
var notCreatable = map[string]string{
	"jvm-heaplimit":              "the validating webhook refuses the profile",
	"node-envfrom-known-keys":    "the webhook does not read ConfigMaps",
	"jvm-launcher-envfrom":       "the webhook does not read ConfigMaps",
	"node-options-from-file-key": "fileKeyRef is not served by every version",
	"node-pod-limit-smaller":     "a container's limit above the pod's is refused",
	"mirror-pod":                 "an annotation of the kubelet's, which needs a node",
	"again-new-recommendation":   "the pod's size is part of the story, and the record of an earlier one",
}

// goldenCase are the objects of one case.
type goldenCase struct {
	profile        *v1alpha1.MemoryProfile
	pod            *corev1.Pod
	recommendation *v1alpha1.MemoryRecommendation
}

func readGolden(file string) goldenCase {
	GinkgoHelper()
	var c goldenCase
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var kind struct{ Kind string }
		Expect(yaml.Unmarshal(doc, &kind)).To(Succeed())
		var obj any
		switch kind.Kind {
		case "MemoryProfile":
			c.profile = &v1alpha1.MemoryProfile{}
			obj = c.profile
		case "Pod":
			c.pod = &corev1.Pod{}
			obj = c.pod
		case "MemoryRecommendation":
			c.recommendation = &v1alpha1.MemoryRecommendation{}
			obj = c.recommendation
		default:
			continue
		}
		Expect(yaml.Unmarshal(doc, obj)).To(Succeed())
	}
	return c
}

// seen is what a container gets to see of memfit, without what the API server fills in by itself.
func seen(pod *corev1.Pod) map[string]any {
	out := map[string]any{"record": recorded(pod)}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		var env []string
		for _, v := range c.Env {
			if v.ValueFrom != nil {
				v.Value = "(valueFrom)"
			}
			env = append(env, v.Name+"="+v.Value)
		}
		out[c.Name] = map[string]any{
			"env": env, "resizePolicy": fmt.Sprint(c.ResizePolicy), "limit": c.Resources.Limits.Memory().String(),
		}
	}
	return out
}

// recorded is, by container, what the annotation says was set and left alone.
func recorded(pod *corev1.Pod) map[string]any {
	var record struct {
		Containers map[string]struct{ Set, Skipped, Was map[string]string }
	}
	out := make(map[string]any)
	if json.Unmarshal([]byte(pod.Annotations[v1alpha1.InjectedAnnotation]), &record) == nil {
		for name, c := range record.Containers {
			out[name] = c
		}
	}
	return out
}

// The golden pairs of internal/inject, here each of them the whole way: a real API server validates and defaults the
// pod, the webhook patches it over TLS, the API server validates what came of it.
var _ = Describe("The golden pairs of inject", func() {
	files, err := goldenpods.Inputs()
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if notCreatable[name] != "" {
			continue
		}
		It("through a real API server: "+name, func() {
			c, ns := readGolden(file), namespace()
			want := readGolden(file + ".injected").pod
			c.profile.Namespace = ns
			profiled(c.profile)
			if c.recommendation != nil {
				c.recommendation.Namespace = ns
				c.pod.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "example.com/v1", Kind: "Web", Name: "web", UID: "web", Controller: new(true)},
				}
				// records outlive no bare pod
				c.recommendation.Name, c.recommendation.OwnerReferences = "web.example.com-web", c.pod.OwnerReferences
				status := c.recommendation.Status
				Expect(api.Create(ctx, c.recommendation)).To(Succeed())
				c.recommendation.Status = status
				Expect(api.Status().Update(ctx, c.recommendation)).To(Succeed())
			}
			c.pod.Namespace = ns
			c.pod.Annotations = with(c.pod.Annotations, v1alpha1.ProfileAnnotation, c.profile.Name)
			attempt := func(g Gomega) { // the webhook's cache hears of the recommendation a moment later
				pod := c.pod.DeepCopy()
				g.Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
				g.Expect(seen(pod)).To(Equal(seen(want)))
			}
			if c.recommendation != nil {
				Eventually(attempt).MustPassRepeatedly(len(replicas)).Should(Succeed())
			}
			attempt(NewGomega(Fail))
			created(c.pod)
			Expect(seen(c.pod)).To(Equal(seen(want)))
		})
	}
})

// with is m with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = make(map[string]string, 1)
	}
	m[key] = value
	return m
}
