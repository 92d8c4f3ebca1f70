// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// pod is what OpenShift's restricted-v2 looks at.
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

// refusals is what the SCC restricted-v2 would say, by its published definition: users and groups from the range of
// the namespace, which no one knows here, so none may be named; ALL dropped; no part of the host.
func refusals(p pod) []string {
	var no []string
	refuse := func(wrong bool, why string) {
		if wrong {
			no = append(no, why)
		}
	}
	refuse(p.HostPID || p.HostIPC || p.HostNetwork, "namespaces of the host")
	s := p.SecurityContext
	refuse(s.RunAsUser != nil || s.FSGroup != nil, "a user or group of the pod's own choice")
	for _, v := range p.Volumes {
		for kind := range v {
			refuse(!slices.Contains([]string{
				"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
			}, kind), "volume "+kind)
		}
	}
	for _, c := range p.Containers {
		s := c.SecurityContext
		refuse(s.RunAsUser != nil, "a user of the container's own choice")
		refuse(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "privilege escalation")
		refuse(s.Privileged != nil && *s.Privileged, "a privileged container")
		refuse(s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL"), "capabilities that are not dropped")
		refuse(s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add, func(c string) bool {
			return c != "NET_BIND_SERVICE"
		}), "capabilities that are added")
		profile := p.SecurityContext.SeccompProfile
		refuse(profile == nil || profile.Type != "RuntimeDefault", "no seccomp profile of the runtime")
		for _, port := range c.Ports {
			refuse(port.HostPort != 0, "a port of the host")
		}
		refuse(s.SELinuxOptions != nil || p.SecurityContext.SELinuxOptions != nil, "SELinux options")
	}
	return no
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

// TestOpenShiftAdmitsTheManager: with platform openshift as it stands, in every way to install it; without it the user
// is named, which a namespace's range refuses.
func TestOpenShiftAdmitsTheManager(t *testing.T) {
	c := load(t)
	for name, p := range pairs {
		values := merged(t, base, p.values, "platform: openshift")
		for _, o := range all(t, c, values, "Deployment") {
			if no := refusals(podOf(t, o)); len(no) > 0 {
				t.Errorf("%s: restricted-v2 refuses %s", name, strings.Join(no, ", "))
			}
		}
	}
	usual := refusals(podOf(t, all(t, c, "", "Deployment")[0]))
	if !slices.Equal(usual, []string{"a user or group of the pod's own choice"}) {
		t.Errorf("without platform: openshift, restricted-v2 refuses %v", usual)
	}
}

// TestOpenShiftAllowsTheAgent: its constraints are for its account alone, and allow what its pod has and no more.
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
		t.Errorf("%d %s where the platform is Kubernetes", len(left), kind)
	}
}
