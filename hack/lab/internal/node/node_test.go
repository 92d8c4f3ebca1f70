// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/uml"
)

func testNode(t *testing.T) *Node {
	t.Helper()
	return &Node{
		Layout:  layout.Layout{Name: "memfit-lab-x", Cache: "/cache", State: "/state", Run: "/run/lab"},
		Bin:     "/cache/bin/view",
		Options: Options{CrashBackoffMax: 7 * time.Second},
		Images:  []Image{{Ref: "memfit.test/pause:lab"}},
	}
}

func TestRenderedConfiguration(t *testing.T) {
	n := testNode(t)
	want := map[string][]string{
		"containerd.toml": {
			"address = '/run/lab/containerd.sock'", "sandbox = 'memfit.test/pause:lab'", "BinaryName = '/cache/bin/view/runc'",
			"root = '/state/containerd'",
		},
		"kubelet.yaml": {
			"containerRuntimeEndpoint: unix:///run/lab/containerd.sock", "maxContainerRestartPeriod: 7s",
			`cgroupRoot: "/memfit-lab-x"`, `clientCAFile: "/state/pki/ca.crt"`,
		},
		"cni.json": {`"dataDir": "/state/cni"`, layout.PodCIDR},
	}
	for name := range configFiles {
		got, err := render(name, n.settings())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want[name] {
			if !strings.Contains(string(got), part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
		if name == "cni.json" && !json.Valid(got) {
			t.Errorf("%s is not JSON:\n%s", name, got)
		}
	}
}

// TestGatesOfOlderVersions: a version where the gate of a configured setting is off by default needs the gate.
func TestGatesOfOlderVersions(t *testing.T) {
	for version, want := range map[string]bool{"v1.34.4": true, "v1.35.4": false, "v1.36.3": false, "v1.37.2": false} {
		n := testNode(t)
		n.Options.Kubernetes = version
		got, err := render("kubelet.yaml", n.settings())
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(got), "featureGates: {KubeletCrashLoopBackOffMax: true}"); has != want {
			t.Errorf("%s: the gate is set: %t, want %t", version, has, want)
		}
	}
}

// TestConfigurationOfTheCgroup2Node: its configuration has the guest's paths and the settings of each variant.
func TestConfigurationOfTheCgroup2Node(t *testing.T) {
	n := testNode(t)
	kubelet := func(v uml.Variants) string {
		t.Helper()
		got, err := render("kubelet.yaml", n.cgroup2Settings(v))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	plain := kubelet(uml.Variants{})
	all := kubelet(uml.Variants{SingleProcessOOMKill: true, Swap: true, MemoryQoS: true})
	for _, tc := range []struct {
		what, text string
		want, not  []string
	}{
		{
			"plain", plain,
			[]string{
				"failCgroupV1: true", "singleProcessOOMKill: false", "swapBehavior: NoSwap", `cgroupRoot: "/"`,
				`clusterDNS: ["` + layout.Cgroup2IP + `"]`, `clientCAFile: "/share/pki/ca.crt"`, "maxContainerRestartPeriod: 7s",
			},
			[]string{"/state", "/run/lab/x", "featureGates", "oomScoreAdj"},
		},
		{
			"all variants", all,
			[]string{"singleProcessOOMKill: true", "swapBehavior: LimitedSwap", "featureGates: {MemoryQoS: true}"}, nil,
		},
	} {
		for _, part := range tc.want {
			if !strings.Contains(tc.text, part) {
				t.Errorf("%s: the kubelet's configuration lacks %q", tc.what, part)
			}
		}
		for _, part := range tc.not {
			if strings.Contains(tc.text, part) {
				t.Errorf("%s: the kubelet's configuration has %q", tc.what, part)
			}
		}
	}
	// All variants share one disk, which is made with this configuration of containerd.
	one, err := render("containerd.toml", n.cgroup2Settings(uml.Variants{}))
	other, otherErr := render("containerd.toml", n.cgroup2Settings(uml.Variants{Swap: true}))
	if err != nil || otherErr != nil || string(one) != string(other) || strings.Contains(string(one), "/state") {
		t.Errorf("containerd's configuration: %v, %v\n%s", err, otherErr, one)
	}
	cni, err := render("cni.json", n.cgroup2Settings(uml.Variants{}))
	if err != nil || !json.Valid(cni) || !strings.Contains(string(cni), layout.Cgroup2PodCIDR) {
		t.Errorf("%v\n%s", err, cni)
	}
}

func TestHealthyLabNeedsExactlyTheStartedDaemons(t *testing.T) {
	n := testNode(t)
	started := []string{
		n.etcd().Name, n.containerd().Name, n.apiServer().Name, n.forwarder("api-forward", "", "").Name,
		n.controllerManager().Name, n.scheduler().Name, n.kubelet().Name, n.certManager().Name,
	}
	if n.Options.CertManager = true; !slices.Equal(started, n.daemons()) {
		t.Errorf("started %v, but a healthy lab has %v", started, n.daemons())
	}
	if n.Options.CertManager = false; !slices.Equal(started[:len(started)-1], n.daemons()) {
		t.Errorf("a healthy lab without cert-manager has %v", n.daemons())
	}
}

func TestShimsAndStraysAreOnlyOfThisLab(t *testing.T) {
	n := testNode(t)
	tests := map[string]struct {
		args                string
		wantShim, wantStray bool
	}{
		"our etcd": {args: "/cache/bin/view/etcd --data-dir=/state/etcd", wantStray: true},
		"our containerd": {
			args: "/cache/bin/view/containerd --config=/state/config/containerd.toml", wantStray: true,
		},
		"our forwarder": {
			args: "/state/bin/lab serve-forward --netns=/run/lab/netns --listen=127.0.0.1:1", wantStray: true,
		},
		"our shim": {
			args: "/cache/bin/view/containerd-shim-runc-v2 -namespace k8s.io -address /run/lab/containerd.sock", wantShim: true,
			wantStray: true,
		},
		"our node with cgroup v2, or its first boot": {
			args:      "/cache/cgroup2/kernel-1/linux ubd0=/cache/cgroup2/seed.work/disk.ext4 hostfs=/state/cgroup2/share",
			wantStray: true,
		},
		"the first boot of another lab": {
			args: "/cache/cgroup2/kernel-1/linux ubd0=/cache/cgroup2/seed.work/disk.ext4 hostfs=/state2/cgroup2/share",
		},
		"envtest, from the same cache": {args: "/cache/bin/view/etcd --data-dir=/tmp/k8s_test_framework_1"},
		"the machine's etcd":           {args: "/usr/bin/etcd --data-dir=/var/lib/etcd"},
		"the machine's shim": {
			args: "/usr/bin/containerd-shim-runc-v2 -namespace moby -address /run/containerd/containerd.sock",
		},
		"an editor with one of our logs": {args: "/usr/bin/vi /state/logs/etcd.log"},
		"another user's kubectl":         {args: "/cache/bin/view/kubectl get pods"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(tc.args)
			if got := n.isShim(args); got != tc.wantShim {
				t.Errorf("isShim = %v, want %v", got, tc.wantShim)
			}
			if got := n.isStray(args); got != tc.wantStray {
				t.Errorf("isStray = %v, want %v", got, tc.wantStray)
			}
		})
	}
}

// TestDownTriesAgain: a bounded number of times, with a note each time, and it returns the last error.
func TestDownTriesAgain(t *testing.T) {
	pauses := []time.Duration{time.Second, 5 * time.Second}
	for name, tc := range map[string]struct {
		fails     int
		wantErr   bool
		wantWait  time.Duration
		wantNotes int
	}{
		"it works":                 {},
		"it works the second time": {fails: 1, wantWait: time.Second, wantNotes: 1},
		"it works the last time":   {fails: 2, wantWait: 6 * time.Second, wantNotes: 2},
		"it never works":           {fails: 9, wantErr: true, wantWait: 6 * time.Second, wantNotes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			tries, waited := 0, time.Duration(0)
			var notes []string
			err := retryPaused(func() error {
				if tries++; tries <= tc.fails {
					return errors.Join(errors.New("removing the cgroups: busy"), errors.New("removing files: not empty"))
				}
				return nil
			}, pauses, func(
				format string, args ...any,
			) {
				notes = append(notes, fmt.Sprintf(format, args...))
			}, func(d time.Duration) { waited += d })
			if (err != nil) != tc.wantErr || waited != tc.wantWait || len(notes) != tc.wantNotes {
				t.Errorf("%v after %s and %q", err, waited, notes)
			}
			for _, note := range notes {
				if !strings.Contains(note, "removing the cgroups: busy; removing files: not empty") {
					t.Errorf("%q does not name what is left", note)
				}
			}
		})
	}
}

func TestMountsBelow(t *testing.T) {
	const mountinfo = `22 1 8:1 / / rw - ext4 /dev/vda rw
23 22 0:5 / /state/kubelet/pods/x/volumes/token rw shared:1 - tmpfs none rw
24 22 0:6 / /statement rw - tmpfs none rw
25 22 0:7 / /state/with\040space rw - tmpfs none rw
26 22 0:4 net:[4026532] /run/lab/netns rw - nsfs none rw
`
	want := []string{"/state/kubelet/pods/x/volumes/token", "/state/with space", "/run/lab/netns"}
	if got := mountsBelow([]byte(mountinfo), "/state", "/run/lab"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseNodeReady(t *testing.T) {
	tests := map[string]struct {
		body    string
		wantErr string
	}{
		"ready": {body: `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
		"not ready, and why": {
			body: `{"status":{"conditions":[{"type":"Ready","status":"False","message":"no network"}]}}`, wantErr: "no network",
		},
		"registered a moment ago": {body: `{}`, wantErr: "not reported"},
		"ready, but still tainted": {
			body:    `{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
			wantErr: "taint",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := parseNodeReady([]byte(tc.body))
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
		})
	}
}

// TestWhatIsWrittenIsReadBack: the kubeconfig and the parameters of both nodes.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	n := testNode(t)
	n.Layout.State = t.TempDir()
	if _, err := n.readIdentity(); err == nil || !strings.Contains(err.Error(), "no lab is up") {
		t.Errorf("a lab that never came up: %v", err)
	}
	if err := errors.Join(n.writeCredentials("https://127.0.0.1:1"), n.writeIdentity()); err != nil {
		t.Fatal(err)
	}
	if a, err := newAPI(n.Layout.Kubeconfig()); err != nil || a.url != "https://127.0.0.1:1" {
		t.Errorf("%+v, %v", a, err)
	}
	var again Node
	again.Layout = n.Layout
	if err := again.Attach(); err != nil || again.Bin != n.Bin || again.Options != n.Options {
		t.Errorf("%+v, %v, want %+v", again, err, n)
	}
	if _, err := n.readCgroup2(); err == nil || !strings.Contains(err.Error(), "never came up") {
		t.Errorf("a second node that never came up: %v", err)
	}
	want := Cgroup2{Kernel: "/kernel", Bin: n.Bin, Variants: uml.Variants{Swap: true}}
	if err := os.MkdirAll(n.cgroup2Data(""), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeRecord(n.cgroup2Identity(), want); err != nil {
		t.Fatal(err)
	}
	if got, err := n.readCgroup2(); err != nil || got.Kernel != want.Kernel || got.Variants != want.Variants {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestLogTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for content, want := range map[string]string{
		"":             "",
		"one\n":        "one",
		"1\n2\n3\n4\n": "3\n4",
		"1\n2":         "1\n2",
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := logTail(path, 2); got != want {
			t.Errorf("logTail(%q) = %q, want %q", content, got, want)
		}
	}
	if got := logTail(filepath.Join(t.TempDir(), "none"), 2); !strings.Contains(got, "no log") {
		t.Errorf("a missing log: got %q", got)
	}
}
