// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/profile"
)

// State compares a running pod with the current settings of its profile.
type State string

// The states.
const (
	// UpToDate: the pod has the current settings, or the plan has none.
	UpToDate State = "UpToDate"
	// Stale: memfit set variables at creation, and the current settings differ.
	Stale State = "Stale"
	// NotInjected: the pod was created before the profile, or while the webhook was unavailable.
	NotInjected State = "Missed"
	// Skipped: memfit skips every setting, with reasons.
	Skipped State = "Skipped"
	// Disabled: the profile sets nothing (tuning.mode Disabled or DryRun).
	Disabled State = "Disabled"
)

// Compare returns the state of a running pod, and the reason for a status message. It compares only env: the
// recommendation reports sizes, and a resizePolicy cannot change. observed is the data about replicas, see [Input].
func Compare(pod *corev1.Pod, n *profile.Profile, observed map[string]Observed) (State, string) {
	return OfRunning(pod, n, observed).StateOf(pod)
}

// StateOf is [Compare] with an existing plan, which must be for this pod.
func (p Plan) StateOf(pod *corev1.Pod) (State, string) {
	if p.refused != "" {
		return Skipped, p.refused
	}
	if !p.has(v1alpha1.TuningInject) {
		return Disabled, p.offText()
	}
	differ, settings := p.differences(pod)
	if len(differ) > 0 {
		if readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]) == nil {
			return NotInjected, "the pod was created without memfit; it should have " + joinFirst(differ, "; ")
		}
		return Stale, "it should have " + joinFirst(differ, "; ")
	}
	if settings > 0 {
		return UpToDate, fmt.Sprintf("all settings are in place (%d)", settings)
	}
	if skipped := p.skipTexts(); len(skipped) > 0 {
		return Skipped, joinFirst(skipped, "; ")
	}
	return UpToDate, "there is nothing to set"
}

func (p Plan) offText() string {
	switch {
	case len(p.containers) == 0:
		return "the profile manages no container of this pod"
	case p.has(v1alpha1.TuningDryRun):
		return "tuning.mode is DryRun: nothing is set"
	}
	return "tuning.mode is Disabled: nothing is set"
}

func (p Plan) has(mode v1alpha1.TuningMode) bool {
	return slices.ContainsFunc(p.containers, func(c ContainerPlan) bool { return c.mode == mode })
}

// differences describes the variables that a new pod would have instead, and returns the number of planned settings.
func (p Plan) differences(pod *corev1.Pod) (differ []string, settings int) {
	for i := range p.containers {
		c := &p.containers[i]
		settings += len(c.set)
		if c.edit.Env == nil {
			continue
		}
		have, _ := constraints.Find(pod, c.name)
		for j, v := range c.edit.Env {
			switch {
			case v.Absent:
				differ = append(differ, fmt.Sprintf("no %s in container %s", shorten(v.Name), c.name))
			case j >= len(have.Env) || v.EnvVar != have.Env[j]:
				differ = append(differ, fmt.Sprintf("%s=%s in container %s", shorten(v.Name), shorten(v.Value), c.name))
			}
		}
	}
	return differ, settings
}

func (p Plan) skipTexts() []string {
	var out []string
	for i := range p.containers {
		for _, s := range p.containers[i].skips {
			out = append(out, fmt.Sprintf("container %s: %s", p.containers[i].name, s.text()))
		}
	}
	return out
}

// joinFirst joins the first three texts, and adds the number of the others.
func joinFirst(texts []string, separator string) string {
	const most = 3
	if extra := len(texts) - most; extra > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], separator), extra)
	}
	return strings.Join(texts, separator)
}
