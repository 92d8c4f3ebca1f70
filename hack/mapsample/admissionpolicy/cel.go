// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpolicy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/runtimes"
)

// rule sets one environment variable in some containers.
type rule struct {
	env        string
	containers chosen
	formula    *formula
	runtime    *runtimes.Runtime
	// divided: the profile sets how many processes share a container.
	divided bool
	// version of the runtime that the profile declares.
	version runtimes.Version
}

// limitOf is a container's limit in bytes, in CEL.
const limitOf = `quantity(c.resources.limits["memory"]).asInteger()`

const hasLimit = `has(c.resources) && has(c.resources.limits) && "memory" in c.resources.limits`

// policy returns the MutatingAdmissionPolicy of the rules.
func policy(n *profile.Profile, name string, rules []rule) *admissionregistrationv1.MutatingAdmissionPolicy {
	fail, create := admissionregistrationv1.Ignore, admissionregistrationv1.OperationType("CREATE")
	exact := admissionregistrationv1.Equivalent
	p := &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, ReinvocationPolicy: "IfNeeded", // a later webhook may add a sidecar
			MatchConditions: conditions(n),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: &exact, NamespaceSelector: namespaces(n), ObjectSelector: objects(n),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{create},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
						},
					},
				}},
			},
		},
	}
	for _, r := range rules {
		for _, list := range []string{"containers", "initContainers"} {
			p.Spec.Mutations = append(p.Spec.Mutations, admissionregistrationv1.Mutation{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: r.expression(list, namespaceConditions(n)),
				},
			})
		}
	}
	return p
}

// conditions exclude pods that memfit would skip, and pods whose effective limit CEL cannot compute.
func conditions(n *profile.Profile) []admissionregistrationv1.MatchCondition {
	all := []admissionregistrationv1.MatchCondition{
		{Name: "not-opted-out", Expression: notOptedOut("object")},
		{Name: "not-injected-by-memfit", Expression: fmt.Sprintf(
			"!has(object.metadata.annotations) || !(%q in object.metadata.annotations)", v1alpha1.InjectedAnnotation,
		)},
		{Name: "not-a-static-pod",
			Expression: `!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)`},
		{Name: "linux", Expression: `!has(object.spec.os) || object.spec.os.name == "linux"`},
		{Name: "no-limit-of-the-whole-pod",
			Expression: `!has(object.spec.resources) || !has(object.spec.resources.limits) || !("memory" in object.spec.resources.limits)`},
		{Name: "no-volume-in-memory",
			Expression: `!has(object.spec.volumes) || !object.spec.volumes.exists(v, has(v.emptyDir) && has(v.emptyDir.medium) && v.emptyDir.medium == "Memory")`},
	}
	requested := annotation("object", v1alpha1.ProfileAnnotation)
	if n.Spec.Selector == nil {
		return append(
			all,
			admissionregistrationv1.MatchCondition{
				Name: "asks-for-this-profile", Expression: fmt.Sprintf("%s == %q", requested, n.Ref.Name),
			},
		)
	}
	return append(
		all,
		admissionregistrationv1.MatchCondition{
			Name: "asks-for-no-other-profile", Expression: fmt.Sprintf(`%s in ["", %q]`, requested, n.Ref.Name),
		},
	)
}

// annotation returns a CEL expression for the trimmed value of an annotation; "" where it is absent.
func annotation(of, key string) string {
	return fmt.Sprintf(
		`(has(%[1]s.metadata.annotations) && %[2]q in %[1]s.metadata.annotations ? %[1]s.metadata.annotations[%[2]q].trim() : "")`,
		of, key,
	)
}

// notOptedOut accepts every spelling that memfit's webhook parses as false.
func notOptedOut(of string) string {
	return fmt.Sprintf(`!(%s in ["false", "False", "FALSE", "f", "F", "0"])`, annotation(of, v1alpha1.InjectAnnotation))
}

// namespaceConditions require that the pod's namespace has not opted out and names no other profile, which would take
// precedence over a selector. Match conditions cannot read the namespace, so these are part of the expression.
func namespaceConditions(n *profile.Profile) []string {
	all := []string{notOptedOut("namespaceObject")}
	if n.Spec.Selector != nil {
		all = append(
			all, fmt.Sprintf(`%s in ["", %q]`, annotation("namespaceObject", v1alpha1.ProfileAnnotation), n.Ref.Name),
		)
	}
	return all
}

// unknownRuntime returns conditions for a rule without a declared runtime: the webhook sets other variables where the
// pod's annotation or the command shows the runtime. The entrypoint of Tekton's steps has the command in its arguments.
func unknownRuntime() []string {
	names := []string{"tekton/bin/entrypoint"}
	for _, r := range runtimes.All() {
		for _, c := range r.Commands {
			names = append(names, strings.Replace(regexp.QuoteMeta(c), `\*`, `[0-9.]*`, 1))
		}
	}
	return []string{
		annotation("object", v1alpha1.RuntimeAnnotation) + ` == ""`,
		fmt.Sprintf("(!has(c.command) || !c.command.exists(w, w.matches(%q)))", "(^|/)("+strings.Join(names, "|")+")$"),
	}
}

// namespaces selects the namespace of a MemoryProfile, or those of a ClusterMemoryProfile except kube-system.
func namespaces(n *profile.Profile) *metav1.LabelSelector {
	r := metav1.LabelSelectorRequirement{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"},
	}
	if n.Namespace != "" {
		r.Operator, r.Values = metav1.LabelSelectorOpIn, []string{n.Namespace}
	}
	selector := &metav1.LabelSelector{}
	if n.NamespaceSelector != nil {
		selector = n.NamespaceSelector.DeepCopy()
	}
	selector.MatchExpressions = append(selector.MatchExpressions, r)
	return selector
}

// objects returns the profile's selector; without one, every pod matches.
func objects(n *profile.Profile) *metav1.LabelSelector {
	if n.Spec.Selector == nil {
		return &metav1.LabelSelector{}
	}
	return n.Spec.Selector.DeepCopy()
}

// expression adds the variable to the matching containers of a list. They are merged by name, so that all other fields
// are unchanged.
func (r rule) expression(list string, namespace []string) string {
	return fmt.Sprintf(`Object{
  spec: Object.spec{
    %[1]s: !has(object.spec.%[1]s) ? [] : object.spec.%[1]s.filter(c,
      %[2]s
    ).map(c, Object.spec.%[1]s{
      name: c.name,
      env: [Object.spec.%[1]s.env{name: %[3]q, value: %[4]s}]
    })
  }
}`, list, strings.Join(append(namespace, r.conditions(list)...), " &&\n      "), r.env, r.value())
}

// conditions select the containers that get the variable.
func (r rule) conditions(list string) []string {
	var all []string
	switch names := r.containers; {
	case names.name != "":
		all = append(all, fmt.Sprintf("c.name == %q", names.name))
	case len(names.others) > 0:
		quoted := make([]string, len(names.others))
		for i, name := range names.others {
			quoted[i] = strconv.Quote(name)
		}
		all = append(all, fmt.Sprintf("!(c.name in [%s])", strings.Join(quoted, ", ")))
	}
	if r.runtime.Name == string(v1alpha1.RuntimeAuto) {
		all = append(all, unknownRuntime()...)
	}
	if list == "initContainers" {
		all = append(all, `has(c.restartPolicy) && c.restartPolicy == "Always"`) // native sidecars
	}
	fits := fmt.Sprintf(`quantity(c.resources.limits["memory"]).isInteger() && %s >= %d`, limitOf, max(r.formula.from, 1))
	switch f := r.formula; {
	case !f.withoutLimit:
		all = append(all, hasLimit, fits)
	case !f.constant():
		all = append(all, fmt.Sprintf("(!(%s) || %s)", hasLimit, fits))
	}
	all = append(all,
		"(!has(c.envFrom) || size(c.envFrom) == 0)", // it may define the variable, which a literal would override
		fmt.Sprintf("(!has(c.env) || !c.env.exists(e, e.name == %q))", r.env),
		fmt.Sprintf(
			"(!has(c.command) || !c.command.exists(w, w.matches(%[1]q))) && (!has(c.args) || !c.args.exists(w, "+
				"w.matches(%[1]q)))",
			`(^|[\s;&|(])`+r.env+"=",
		))
	return append(all, r.skips()...)
}

// skips returns conditions that exclude containers with a setting by the user, by the signs in the table of runtimes.
// Text is searched without word boundaries: skipping a container does no harm.
func (r rule) skips() []string {
	var all []string
	for i := range r.runtime.Knobs {
		k := &r.runtime.Knobs[i]
		if k.Env != r.env {
			continue
		}
		for _, sign := range k.SkipIf {
			if sign.UnlessDivided && r.divided || sign.UnlessSince.Known() && r.version.AtLeast(sign.UnlessSince) {
				continue
			}
			condition := r.without(sign)
			if !slices.Contains(all, condition) {
				all = append(all, condition)
			}
		}
		if names := strings.Join(r.launchers(), ", "); k.HeapCap != nil && names != "" {
			condition := fmt.Sprintf("(!has(c.env) || !c.env.exists(e, e.name in [%s]))", names)
			if !slices.Contains(all, condition) {
				all = append(all, condition)
			}
		}
	}
	return all
}

// launchers returns the names, quoted, of variables from which start scripts read a number for the heap cap.
func (r rule) launchers() (names []string) {
	for _, l := range r.runtime.Launchers {
		if l.Holds != runtimes.HoldsFlags {
			names = append(names, strconv.Quote(l.Name))
		}
	}
	return names
}

func (r rule) without(sign runtimes.Sign) string {
	if sign.In == runtimes.AsVariable {
		if prefix, ok := strings.CutSuffix(sign.Text, "*"); ok {
			return fmt.Sprintf("(!has(c.env) || !c.env.exists(e, e.name.startsWith(%q)))", prefix)
		}
		return fmt.Sprintf("(!has(c.env) || !c.env.exists(e, e.name == %q))", sign.Text)
	}
	contains := func(of string) string {
		if r.runtime.Fold != nil && strings.Contains(sign.Text, "-") { // flags with "_" for "-"
			of += `.replace("_", "-")`
		}
		return fmt.Sprintf("%s.contains(%q)", of, sign.Text)
	}
	absent := fmt.Sprintf(
		"(!has(c.command) || !c.command.exists(w, %[1]s)) && (!has(c.args) || !c.args.exists(w, %[1]s))", contains("w"),
	)
	if sign.In == runtimes.Anywhere {
		absent += fmt.Sprintf(" && (!has(c.env) || !c.env.exists(e, has(e.value) && %s))", contains("e.value"))
	}
	return absent
}

// value returns the CEL expression for the variable's value.
func (r rule) value() string {
	f := r.formula
	switch {
	case f.constant():
		return strconv.Quote(f.unlimited)
	case f.withoutLimit:
		return fmt.Sprintf("!(%s) ? %q : %s", hasLimit, f.unlimited, f.expression())
	}
	return f.expression()
}

// expression returns the CEL expression for the value in a container with a limit.
func (f *formula) expression() string {
	if f.percent == 0 {
		return f.choose(func(s step) string { return strconv.Quote(s.text) })
	}
	number := fmt.Sprintf("%s * %d / 100", limitOf, f.percent)
	if f.unit > 1 {
		number = fmt.Sprintf("%s / %d", number, int64(f.unit))
	}
	if less := f.choose(func(s step) string { return strconv.FormatInt(s.less, 10) }); less != "0" {
		number += " - " + less
	}
	parts := []string{"string(" + number + ")"}
	if f.prefix != "" {
		parts = append([]string{strconv.Quote(f.prefix)}, parts...)
	}
	if f.suffix != "" {
		parts = append(parts, strconv.Quote(f.suffix))
	}
	return strings.Join(parts, " + ")
}

// choose returns the CEL expression that selects the step for the container's limit.
func (f *formula) choose(of func(step) string) string {
	last := len(f.steps) - 1
	out := of(f.steps[last])
	for i := last - 1; i >= 0; i-- {
		out = fmt.Sprintf("%s <= %d ? %s : %s", limitOf, int64(f.steps[i].upTo), of(f.steps[i]), out)
	}
	if last > 0 {
		out = "(" + out + ")"
	}
	return out
}
