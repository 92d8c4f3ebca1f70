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

// sayEvery keeps waiting from filling the screen: what changes meanwhile is said a little later.
const sayEvery = 5 * time.Second

// hintEvery is how long a wait may take before it tells where to look: a person has begun to wonder by then.
const hintEvery = 40 * time.Second

// story prints what it does and reads the cluster to say what became of it.
type story struct {
	kubectlPath string
	client.Client
	clientset kubernetes.Interface
}

func newStory(ctx context.Context, kubectl string) (*story, error) {
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
	return &story{kubectlPath: kubectl, Client: c, clientset: cs}, ctx.Err()
}

func (s *story) heading(n int, title string) {
	fmt.Printf("\n=== %d/7  %s\n\n", n, title)
}

// say prints one line of narration with the time, so that a log shows how long things took.
func (s *story) say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// show runs kubectl, prints the command as a person would type it and its real output, and returns that output.
func (s *story) show(ctx context.Context, args ...string) (string, error) {
	fmt.Printf("$ kubectl %s\n", quoted(args))
	out, err := s.kubectl(ctx, args...)
	fmt.Print(indent(out))
	return out, err
}

func (s *story) kubectl(ctx context.Context, args ...string) (string, error) {
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

// wait is one thing the story waits for.
type wait struct {
	what   string
	atMost time.Duration
	look   string        // the kubectl command, without its namespace, with which a person sees why it takes so long
	detail func() string // what changes at every look, told only when it takes long; nil: nothing
}

// check looks once; the state is what a person is told while it is not done.
type check func(context.Context) (done bool, state string, err error)

func (w wait) hint(state string) string {
	if w.detail != nil {
		state += ", " + w.detail()
	}
	return fmt.Sprintf("%s. To look: kubectl -n %s %s", state, namespace, w.look)
}

// await asks check every second until it says done, and fails with what it last said when the time is up. A wait
// without news says what it waits for and what to look at, again and again.
func (s *story) await(ctx context.Context, w wait, check check) error {
	ctx, cancel := context.WithTimeout(ctx, w.atMost)
	defer cancel()
	begin := time.Now()
	said := begin
	var last, state string
	for {
		done, now, err := check(ctx)
		if err != nil {
			now = err.Error()
		}
		if done {
			return nil
		}
		if now != "" && ctx.Err() == nil { // what fails because the time is up is no news
			state = now
		}
		switch since := time.Since(said); {
		case state != last && since > sayEvery:
			s.say("waiting for %s: %s", w.what, state)
			last, said = state, time.Now()
		case since > hintEvery:
			s.say("still waiting for %s after %s (at most %s): %s",
				w.what, time.Since(begin).Round(time.Second), w.atMost, w.hint(state))
			last, said = state, time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s; the last seen was: %s: %w",
				w.atMost, w.what, w.hint(state), context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// newestPod is the youngest pod of an app that is not on its way out.
func (s *story) newestPod(ctx context.Context, app string) (*corev1.Pod, error) {
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
