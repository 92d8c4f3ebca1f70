// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

const namespace = "memfit-demo"

// stateInterval is the shortest time between two progress lines of a wait.
const stateInterval = 5 * time.Second

// hintInterval is the time after which a wait without news prints a command to inspect it.
const hintInterval = 40 * time.Second

// session runs the demo on a cluster, and prints each command and its result.
type session struct {
	kubectlPath string
	client.Client
	clientset kubernetes.Interface
}

func newSession(ctx context.Context, kubectl string) (*session, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding a cluster (run make demo, or set KUBECONFIG): %w", err)
	}
	if err := v1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, err
	}
	cs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := cs.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster at %s: %w", config.Host, err)
	}
	fmt.Printf("Kubernetes %s at %s\n", version.GitVersion, config.Host)
	return &session{kubectlPath: kubectl, Client: c, clientset: cs}, ctx.Err()
}

func (s *session) heading(n int, title string) {
	fmt.Printf("\n=== %d/7  %s\n\n", n, title)
}

// printf prints one line with the time, so that a log shows how long things took.
func (s *session) printf(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// show runs kubectl, prints the command line and its output, and returns the output.
func (s *session) show(ctx context.Context, args ...string) (string, error) {
	fmt.Printf("$ kubectl %s\n", quoted(args))
	out, err := s.kubectl(ctx, args...)
	fmt.Print(indent(out))
	return out, err
}

func (s *session) kubectl(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, s.kubectlPath, append([]string{"-n", namespace}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", quoted(args), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if strings.ContainsAny(a, " {\"") {
			words[i] = "'" + a + "'"
		}
	}
	return strings.Join(words, " ")
}

func indent(text string) string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// wait describes a condition that the demo waits for.
type wait struct {
	what    string
	atMost  time.Duration
	command string        // a kubectl command, without the namespace, that shows the cause of a delay
	detail  func() string // numbers that change at every check, printed with a hint only; nil: none
}

// check evaluates a condition once; state is printed while it is not done.
type check func(context.Context) (done bool, state string, err error)

func (w wait) hint(state string) string {
	if w.detail != nil {
		state += ", " + w.detail()
	}
	return fmt.Sprintf("%s. To inspect: kubectl -n %s %s", state, namespace, w.command)
}

// await calls check every second until it is done, and fails with its last state when the time is up. Every
// hintInterval without news it prints what it waits for and a command to inspect it.
func (s *session) await(ctx context.Context, w wait, check check) error {
	ctx, cancel := context.WithTimeout(ctx, w.atMost)
	defer cancel()
	begin := time.Now()
	printed := begin
	var last, state string
	for {
		done, now, err := check(ctx)
		if err != nil {
			now = err.Error()
		}
		if done {
			return nil
		}
		if now != "" && ctx.Err() == nil { // ignores an error of the timeout itself
			state = now
		}
		switch since := time.Since(printed); {
		case state != last && since > stateInterval:
			s.printf("waiting for %s: %s", w.what, state)
			last, printed = state, time.Now()
		case since > hintInterval:
			s.printf("still waiting for %s after %s (at most %s): %s",
				w.what, time.Since(begin).Round(time.Second), w.atMost, w.hint(state))
			last, printed = state, time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s; last state: %s: %w",
				w.atMost, w.what, w.hint(state), context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// newestPod returns the newest pod of an app that is not being deleted.
func (s *session) newestPod(ctx context.Context, app string) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	var newest *corev1.Pod
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp == nil && (newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp)) {
			newest = p
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("no pod of %s yet", app)
	}
	return newest, nil
}
