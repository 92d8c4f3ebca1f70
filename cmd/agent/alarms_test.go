// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/profiles"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/test/expect"
)

// agentOf is the configuration of the agent of a node.
func agentOf(config *rest.Config, node string) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:memfit-agent:memfit-agent",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:memfit-agent", "system:authenticated"},
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
	return as
}

// TestAlarmsBeforeAnAPIServer: an alarm is one field of a snapshot, written with the rights of an agent and under the
// admission policy, which refuses one of another node and one that names no instance.
func TestAlarmsBeforeAnAPIServer(t *testing.T) {
	config := expect.APIServer(t)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	install(ctx, t, c)
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: "node-a", Containers: []corev1.Container{{Name: "app", Image: "app"}},
	}}
	if err := errors.Join(
		c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}),
		c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}}),
		c.Create(ctx, pod),
	); err != nil {
		t.Fatal(err)
	}
	of := &snapshot.Pod{NamespacedName: client.ObjectKeyFromObject(pod), UID: pod.UID}
	_, own, err := clients(agentOf(config, "node-a"))
	if err != nil {
		t.Fatal(err)
	}
	w := snapshot.NewWriter(own)
	go w.Run(ctx)
	send := func(id string, sequence int64) error {
		a := snapshot.Alarm("app", id, sequence, rescue.Prediction{
			Sample:    rescue.Sample{At: time.Now(), Demand: 490 * memory.MiB, Limit: 512 * memory.MiB},
			PerSecond: 50 * memory.MiB, Left: 440 * time.Millisecond,
		})
		status := &v1alpha1.MemorySnapshotStatus{
			NodeName: "node-a", Tier: v1alpha1.AgentWatch, CgroupVersion: "v1", ObservedTime: metav1.Now(), Alarm: a,
		}
		if !w.Alarm(of, status) {
			t.Fatal("the queue is full")
		}
		return (<-w.Results()).Err
	}
	// until waits for what an API server says when it knows role and policy.
	until := func(refused bool, id string, sequence int64) error {
		deadline := time.Now().Add(time.Minute)
		err := send(id, sequence)
		for ; (err != nil) != refused && time.Now().Before(deadline); err = send(id, sequence) {
			time.Sleep(100 * time.Millisecond)
		}
		return err
	}
	if err := until(false, "abc", 1); err != nil {
		t.Fatal(err)
	}
	var before, after v1alpha1.MemorySnapshot
	read := func(into *v1alpha1.MemorySnapshot) {
		t.Helper()
		if err := own.Get().Namespace("shop").Resource("memorysnapshots").Name("web").Do(ctx).Into(into); err != nil {
			t.Fatal(err)
		}
	}
	read(&before)
	if err := send("abc", 2); err != nil {
		t.Fatal(err)
	}
	read(&after)
	a := after.Status.Alarm
	if a == nil || a.Sequence != 2 || a.TimeToLimitMilliseconds != 440 || a.Limit.String() != "512Mi" ||
		!after.IsOf(pod.UID, "node-a") || !after.Status.ObservedTime.Equal(&before.Status.ObservedTime) {
		t.Errorf("%+v of %+v", a, after)
	}
	for _, body := range []string{
		`{"status":{"alarm":{"container":"app","containerID":"abc","sequence":3,"time":"2026-11-27T10:00:00.0`,
		`{"status":{"alarm":{"container":"app","sequence":3,"demand":"490Mi","limit":`,
	} {
		err := own.Patch(types.MergePatchType).Namespace("shop").Resource("memorysnapshots").Name("web").
			Body([]byte(body)).Do(ctx).Error()
		if !apierrors.IsBadRequest(err) {
			t.Errorf("half an alarm, of an agent that died: %v", err)
		}
	}
	read(&before)
	if before.Status.Alarm.Sequence != 2 || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("half an alarm left %+v", before.Status.Alarm)
	}
	if err := until(true, "", 3); err == nil || !strings.Contains(err.Error(), "an alarm names its container") {
		t.Errorf("an alarm of no instance: %v", err)
	}
	w, of = otherNode(t, config), &snapshot.Pod{NamespacedName: of.NamespacedName, UID: of.UID}
	go w.Run(ctx)
	if err := until(true, "abc", 9); err == nil || !strings.Contains(err.Error(), "must be the node of the agent") {
		t.Errorf("an alarm of another node: %v", err)
	}
}

func otherNode(t *testing.T, config *rest.Config) *snapshot.Writer {
	t.Helper()
	_, own, err := clients(agentOf(config, "node-b"))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.NewWriter(own)
}

// TestProfilesBeforeAnAPIServer: an agent may read which namespaces have a profile that enables rescues.
func TestProfilesBeforeAnAPIServer(t *testing.T) {
	config := expect.APIServer(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	install(t.Context(), t, c)
	_, own, err := clients(agentOf(config, "node-a"))
	if err != nil {
		t.Fatal(err)
	}
	set := profiles.NewSet()
	go set.Watch(t.Context(), own)
	p := &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	p.Spec.Sizing.Mode, p.Spec.Sizing.Rescue = v1alpha1.SizingInPlace, v1alpha1.RescueEnabled
	if err := errors.Join(
		c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}), c.Create(t.Context(), p),
	); err != nil {
		t.Fatal(err)
	}
	await := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); set.Rescues("shop") != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("rescues in shop: %t", !want)
			}
		}
	}
	if await(true); set.Rescues("bank") {
		t.Error("a profile of shop enables rescues in bank")
	}
	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	await(false)
}
