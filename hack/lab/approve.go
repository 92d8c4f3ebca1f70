// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/component"
	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// approveWithin limits the wait for the request, which a kubelet sends within seconds of its start.
const approveWithin = 2 * time.Minute

// approveKubelet waits until the kubelet of a new one-node cluster requests its serving certificate, and approves the
// request unseen: no other client uses the cluster yet.
func approveKubelet(ctx context.Context, l layout.Layout, kubeconfig string) error {
	kubernetes, err := component.FindKubernetes(os.Getenv("LAB_KUBERNETES"))
	if err != nil {
		return err
	}
	selected, _ := component.Select(component.All(kubernetes), []string{"kubectl"})
	bin, err := buildBinaries(ctx, l, kubernetes, selected, progress.New(os.Stderr, component.Count(selected)))
	if err != nil {
		return err
	}
	kubectl := func(args ...string) ([]byte, error) {
		args = append(args, "--kubeconfig="+kubeconfig)
		return run.Output(exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), args...))
	}
	for deadline := time.Now().Add(approveWithin); ; time.Sleep(time.Second) {
		requests, err := kubectl("get", "csr", "-o", "name", "--field-selector=spec.signerName=kubernetes.io/kubelet-serving")
		if names := strings.Fields(string(requests)); err == nil && len(names) > 0 {
			_, err = kubectl(append([]string{"certificate", "approve"}, names...)...)
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err(), fmt.Errorf("the kubelet has not requested a serving certificate within "+
				"%s: does its configuration set serverTLSBootstrap: true?", approveWithin))
		}
	}
}
