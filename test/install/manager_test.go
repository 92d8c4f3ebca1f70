// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/podplan"
)

var binary struct {
	sync.Once
	dir string
	err error
}

// managerBinary builds the manager once and returns its path. TestMain removes it.
func managerBinary(t *testing.T) string {
	t.Helper()
	binary.Do(func() {
		binary.dir, binary.err = os.MkdirTemp("", "memfit-install-") //nolint:usetesting // it outlives this test
		if binary.err != nil {
			return
		}
		// Without DWARF and symbols, linking takes half the time.
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary.dir, root+"/cmd/manager").CombinedOutput()
		if err != nil {
			binary.err = fmt.Errorf("building the manager: %w\n%s", err, out)
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return filepath.Join(binary.dir, "manager")
}

// TestFlags checks that the manager accepts the flags of each tree. An unknown flag would cause a crash loop.
func TestFlags(t *testing.T) {
	manager := managerBinary(t)
	for _, tree := range trees {
		d := deployment(t, tree)
		// -h comes last: flags are parsed from the left, so an unknown flag fails before the manager reaches -h.
		args := append(slices.Clone(managerOf(t, &d.Spec.Template.Spec).Args), "-h")
		if out, err := exec.Command(manager, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: manager %v: %v\n%s", tree, args, err, out)
		}
	}
	if exec.Command(manager, "--no-such-flag", "-h").Run() == nil {
		t.Error("the manager accepts an unknown flag, so the check above is ineffective")
	}
}

// TestLease checks that the Role allows the manager's lease by name. Otherwise no replica could become the leader.
func TestLease(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "cmd/manager/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	lease := regexp.MustCompile(`leaderElectionID = "([^"]+)"`).FindSubmatch(source)
	if lease == nil {
		t.Fatal("leaderElectionID = \"...\" not found in cmd/manager/main.go")
	}
	role := one[rbacv1.Role](t, build(t, defaultTree), "Role", "memfit-leader-election-role")
	for _, rule := range role.Rules {
		if slices.Equal(rule.ResourceNames, []string{string(lease[1])}) && slices.Contains(rule.Verbs, "update") {
			return
		}
	}
	t.Errorf("the Role does not allow updates of Lease %s", lease[1])
}

// TestManagerEatsItsOwnFood checks that the manager, a Go program with a memory limit, has the settings that memfit
// would inject.
func TestManagerEatsItsOwnFood(t *testing.T) {
	d := deployment(t, defaultTree)
	isLimit := func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" }
	written := managerOf(t, &d.Spec.Template.Spec)
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: *d.Spec.Template.Spec.DeepCopy()}
	blank := managerOf(t, &pod.Spec)
	blank.Env = slices.DeleteFunc(blank.Env, isLimit)
	blank.ResizePolicy = nil

	spec := &v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}
	podplan.Apply(pod, inject.MakePlan(inject.Input{Pod: pod, Profile: &profile.Profile{Spec: spec}}))

	injected := managerOf(t, &pod.Spec)
	got, want := slices.IndexFunc(written.Env, isLimit), slices.IndexFunc(injected.Env, isLimit)
	if want < 0 {
		t.Fatalf("memfit sets no GOMEMLIMIT on its own manager: %v", injected.Env)
	}
	if got < 0 || written.Env[got].Value != injected.Env[want].Value {
		t.Errorf(
			"config/manager has %v; with limit %s memfit would inject %v", written.Env, written.Resources.Limits.Memory(),
			injected.Env[want],
		)
	}
	if !slices.Equal(written.ResizePolicy, injected.ResizePolicy) {
		t.Errorf("config/manager has resizePolicy %v, memfit would inject %v", written.ResizePolicy, injected.ResizePolicy)
	}
}
