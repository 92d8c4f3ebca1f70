// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import "testing"

func TestParseCgroup(t *testing.T) {
	const uid, id = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "8f14e45fceea167a5a36dedd4bea2543"
	for name, test := range map[string]struct{ path, wantUID, wantContainer string }{
		"cgroupfs, guaranteed": {"/kubepods/pod" + uid + "/" + id, uid, id},
		"cgroupfs, burstable":  {"/kubepods/burstable/pod" + uid + "/" + id, uid, id},
		"systemd": {
			"/kubepods.slice/kubepods-burstable.slice/" +
				"kubepods-burstable-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice/cri-containerd-" + id + ".scope", uid, id,
		},
		"systemd, CRI-O in kind": {
			"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice/crio-" + id +
				".scope", uid, id,
		},
		"a static pod's UID is a hash": {
			"/kubepods/burstable/podd41d8cd98f00b204e9800998ecf8427e/" + id, "d41d8cd98f00b204e9800998ecf8427e", id,
		},
		"the pod itself":      {"/kubepods/burstable/pod" + uid, "", ""},
		"made by a container": {"/kubepods/burstable/pod" + uid + "/" + id + "/init.scope", "", ""},
		"a class of pods":     {"/kubepods/burstable", "", ""},
		"a service":           {"/system.slice/podman.service", "", ""},
		"the root":            {"/", "", ""},
		"nothing":             {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if gotUID, gotContainer := ParseCgroup(test.path); gotUID != test.wantUID || gotContainer != test.wantContainer {
				t.Errorf("ParseCgroup(%q) = %q, %q, want %q, %q", test.path, gotUID, gotContainer, test.wantUID, test.wantContainer)
			}
		})
	}
}
