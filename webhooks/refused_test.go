// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("A policy that refuses memfit's changes", func() {
	It("does not keep the pods of a workload out for longer than a minute", func() {
		b := bounding{template: [2]string{"256Mi", "256Mi"}, recommended: [2]string{"512Mi", "200Mi"}}
		set := b.workload(v1alpha1.SizingOnCreate)
		b.eventually(set, "512Mi")
		enforced := requestsEqualLimits(set.Namespace)
		Eventually(func() error { return api.Create(ctx, b.pod(set, "web-0").Obj(), client.DryRunAll) }).
			WithTimeout(20 * time.Second).Should(MatchError(ContainSubstring("requests must equal limits")))

		number := 0
		attempt := func() (*corev1.Pod, error) { // at the other replica than the one before
			number++
			pod := b.pod(set, fmt.Sprintf("web-%d", number)).Obj()
			return pod, api.Create(ctx, pod)
		}
		for range 3 * len(replicas) {
			_, err := attempt()
			Expect(err).To(MatchError(ContainSubstring("requests must equal limits")))
		}
		later.advance(59 * time.Second)
		for range replicas {
			_, err := attempt()
			Expect(err).To(HaveOccurred(), "memfit gives up before a watch that broke is back")
		}
		Expect(reports).To(BeEmpty())

		leaves := func() {
			GinkgoHelper()
			for range replicas {
				warnings.taken()
				pod, err := attempt()
				Expect(err).NotTo(HaveOccurred())
				Expect(pod.Annotations).NotTo(HaveKey(v1alpha1.InjectedAnnotation))
				Expect(envOf(pod)).To(BeEmpty())
				Expect(pod.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("256Mi"))
				Expect(warnings.taken()).To(ContainElement(ContainSubstring("no pod that memfit changed was created")))
			}
		}
		later.advance(2 * time.Second)
		leaves()
		Eventually(func(g Gomega) { // again, because what refused the others may just have ended
			later.advance(11 * time.Second)
			for range 3 * len(replicas) {
				_, err := attempt()
				g.Expect(err).To(MatchError(ContainSubstring("requests must equal limits")))
			}
			later.advance(61 * time.Second)
			leaves()
			g.Eventually(func() int { return len(reports) }).WithTimeout(time.Second).Should(Equal(len(replicas)))
		}).WithTimeout(20 * time.Second).Should(Succeed())
		for range replicas {
			Expect(<-reports).To(MatchRegexp(`^%s: none of the \d+ new pods of Deployment web that memfit changed since `,
				set.OwnerReferences[0].UID))
		}
		later.advance(5 * time.Minute)
		for range replicas {
			_, err := attempt()
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(reports).To(BeEmpty(), "each replica reports it once")

		for _, obj := range enforced {
			expect.Deleted(ctx, api, obj)
		}
		later.advance(11 * time.Minute)
		Eventually(func(g Gomega) { // the policy is effective for a moment longer
			pod, err := attempt()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Annotations).To(HaveKey(v1alpha1.InjectedAnnotation), "memfit tries again")
		}).MustPassRepeatedly(len(replicas)).WithTimeout(9 * time.Second).Should(Succeed())
		later.advance(2 * time.Minute)
		Eventually(func(g Gomega) { // as soon as they are seen
			dry := b.pod(set, "web").Obj()
			g.Expect(api.Create(ctx, dry, client.DryRunAll)).To(Succeed())
			g.Expect(dry.Annotations).To(HaveKey(v1alpha1.InjectedAnnotation))
		}).MustPassRepeatedly(len(replicas)).WithTimeout(10 * time.Second).Should(Succeed())
		for range replicas {
			pod, err := attempt()
			Expect(err).NotTo(HaveOccurred())
			Expect(pod.Annotations).To(HaveKey(v1alpha1.InjectedAnnotation))
		}
		Expect(reports).To(BeEmpty())
	})
})

// requestsEqualLimits is a policy for one namespace such as many clusters have.
func requestsEqualLimits(ns string) []client.Object {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: "requests-equal-limits-" + ns}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
						},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "object.spec.containers.all(c, c.resources.requests.memory == c.resources.limits.memory)",
				Message:    "requests must equal limits",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	all := []client.Object{policy, binding}
	for _, obj := range all {
		Expect(api.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func() { Expect(client.IgnoreNotFound(api.Delete(ctx, obj))).To(Succeed()) })
	}
	return all
}
