// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	podwebhook "github.com/memfit/memfit/webhooks/pod"
)

// added is a manager that keeps what is added to it.
type added struct {
	manager.Manager
	config    *rest.Config
	runnables []manager.Runnable
}

func (a *added) Add(r manager.Runnable) error {
	a.runnables = append(a.runnables, r)
	return nil
}

func (a *added) GetConfig() *rest.Config   { return a.config }
func (*added) GetScheme() *runtime.Scheme  { return scheme() }
func (*added) GetAPIReader() client.Reader { return nil }
func (*added) GetClient() client.Client    { return nil }

// TestWhatTheWebhookReadsRunsOnEveryReplica: a cache with options by object runs on the leader only if it is added as
// it is, and then the webhook of the other replica waits for it for ever.
func TestWhatTheWebhookReadsRunsOnEveryReplica(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", commonCluster(t).kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	mgr := &added{config: config}
	if err := (&podwebhook.Injector{Kills: &podwebhook.PendingKills{}}).Follow(mgr); err != nil {
		t.Fatal(err)
	}
	if len(mgr.runnables) != 4 {
		t.Fatalf("%d are added, want two caches and what follows them", len(mgr.runnables))
	}
	for _, r := range mgr.runnables {
		if e, can := r.(manager.LeaderElectionRunnable); !can || e.NeedLeaderElection() {
			t.Errorf("%T runs on the leader only", r)
		}
	}
}
