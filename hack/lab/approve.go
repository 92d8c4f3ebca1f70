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

// approveWithin: a kubelet asks within seconds of its start, and the controller manager signs at once.
const approveWithin = 2 * time.Minute

// approveKubelet waits for the serving certificate that the kubelet of a new cluster of one node asks for, and approves
// it. No one else uses the cluster yet, so that it is approved as it is.
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
			return errors.Join(err, ctx.Err(), fmt.Errorf("the kubelet has asked for no serving certificate within %s: does "+
				"it have serverTLSBootstrap: true?", approveWithin))
		}
	}
}
