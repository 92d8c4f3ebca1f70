// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// pod has the fields of a pod that OpenShift's SCC restricted-v2 checks.
type pod struct {
	HostPID, HostIPC, HostNetwork bool
	SecurityContext               securityContext
	Containers                    []struct {
		SecurityContext securityContext
		Ports           []struct{ HostPort int }
	}
	Volumes []map[string]any
}

type securityContext struct {
	RunAsUser, RunAsGroup, FSGroup       *int64
	RunAsNonRoot                         *bool
	Privileged, AllowPrivilegeEscalation *bool
	SeccompProfile                       *struct{ Type string }
	SELinuxOptions                       map[string]string
	Capabilities                         *struct{ Add, Drop []string }
}

// refusals returns the violations of the SCC restricted-v2, by its published definition: users and groups come from the
// namespace's range, which is unknown here, so a pod may set none; it drops ALL capabilities, and uses nothing of the
// host.
func refusals(p pod) []string {
	var found []string
	refuse := func(violated bool, why string) {
		if violated {
			found = append(found, why)
		}
	}
	refuse(p.HostPID || p.HostIPC || p.HostNetwork, "namespaces of the host")
	s := p.SecurityContext
	refuse(s.RunAsUser != nil || s.FSGroup != nil, "a user or group set by the pod")
	for _, v := range p.Volumes {
		for kind := range v {
			refuse(!slices.Contains([]string{
				"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
			}, kind), "volume "+kind)
		}
	}
	for _, c := range p.Containers {
		s := c.SecurityContext
		refuse(s.RunAsUser != nil, "a user set by the container")
		refuse(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "privilege escalation")
		refuse(s.Privileged != nil && *s.Privileged, "a privileged container")
		refuse(s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL"), "capabilities not dropped")
		refuse(s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add, func(c string) bool {
			return c != "NET_BIND_SERVICE"
		}), "added capabilities")
		profile := p.SecurityContext.SeccompProfile
		refuse(profile == nil || profile.Type != "RuntimeDefault", "seccomp profile other than RuntimeDefault")
		for _, port := range c.Ports {
			refuse(port.HostPort != 0, "a port of the host")
		}
		refuse(s.SELinuxOptions != nil || p.SecurityContext.SELinuxOptions != nil, "SELinux options")
	}
	return found
}

func podOf(t *testing.T, o object) pod {
	t.Helper()
	text, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	var workload struct {
		Spec struct{ Template struct{ Spec pod } }
	}
	if err := json.Unmarshal(text, &workload); err != nil {
		t.Fatal(err)
	}
	return workload.Spec.Template.Spec
}

// TestOpenShiftAdmitsTheManager checks that restricted-v2 admits the manager with every pair's values and platform:
// openshift. Without the platform, the chart sets a user, which restricted-v2 refuses.
func TestOpenShiftAdmitsTheManager(t *testing.T) {
	c := load(t)
	for name, p := range pairs {
		values := merged(t, base, p.values, "platform: openshift")
		for _, o := range all(t, c, values, "Deployment") {
			if refused := refusals(podOf(t, o)); len(refused) > 0 {
				t.Errorf("%s: restricted-v2 refuses %s", name, strings.Join(refused, ", "))
			}
		}
	}
	usual := refusals(podOf(t, all(t, c, "", "Deployment")[0]))
	if !slices.Equal(usual, []string{"a user or group set by the pod"}) {
		t.Errorf("without platform: openshift, restricted-v2 refuses %v", usual)
	}
}

// TestOpenShiftAllowsTheAgent checks that the agent's SCC is for its ServiceAccount only and allows exactly its pod's
// capabilities.
func TestOpenShiftAllowsTheAgent(t *testing.T) {
	c := load(t)
	const kind = "SecurityContextConstraints"
	for tier, added := range map[string][]string{"watch": {}, "see": {"SYS_PTRACE", "DAC_READ_SEARCH"}} {
		values := "platform: openshift\nagent: {tier: " + tier + ", namespace: {name: own}}"
		var allowed struct {
			Users, AllowedCapabilities, Volumes    []string
			AllowHostPID, AllowHostDirVolumePlugin bool
			AllowPrivilegedContainer               bool
		}
		text, err := json.Marshal(all(t, c, values, kind)[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &allowed); err != nil {
			t.Fatal(err)
		}
		agent := podOf(t, all(t, c, values, "DaemonSet")[0])
		var has []string
		if caps := agent.Containers[0].SecurityContext.Capabilities; caps != nil {
			has = caps.Add
		}
		if !slices.Equal(allowed.AllowedCapabilities, added) || !slices.Equal(has, added) && len(added) > 0 ||
			!slices.Equal(allowed.Users, []string{"system:serviceaccount:own:memfit-agent"}) ||
			!allowed.AllowHostPID || !allowed.AllowHostDirVolumePlugin || allowed.AllowPrivilegedContainer {
			t.Errorf("%s: %+v, the pod adds %v", tier, allowed, has)
		}
		if tier == "watch" && agent.SecurityContext.RunAsUser != nil {
			t.Errorf("%s names user %d", tier, *agent.SecurityContext.RunAsUser)
		}
	}
	if left := all(t, c, "agent: {tier: see}", kind); len(left) != 0 {
		t.Errorf("%d %s on platform kubernetes, want none", len(left), kind)
	}
}
