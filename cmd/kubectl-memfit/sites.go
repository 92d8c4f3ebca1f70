// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
)

// site is a cluster that is asked.
type site struct {
	*cluster.Cluster
	// name is its context where several are asked, else empty.
	name string
}

// sites prepare to read from the clusters that are asked for. Nothing is read yet.
func (r *reader) sites() ([]site, error) {
	var names []string
	for _, name := range r.contexts {
		if name == "" {
			return nil, errors.New("--context names an empty context: remove it, or the comma beside it")
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) > 1 && r.most < allClusters:
		return nil, errors.New("this command reads one cluster: name one --context")
	case len(names) == 0:
		names = []string{""}
	}
	sites := make([]site, 0, len(names))
	for _, name := range names {
		c, err := cluster.Open(r.in(name))
		if err != nil {
			if name != "" {
				err = fmt.Errorf("context %s: %w", name, err)
			}
			return nil, err
		}
		s := site{Cluster: c}
		if r.everywhere {
			s.Namespace = ""
		}
		if len(names) > 1 {
			s.name = name
		}
		sites = append(sites, s)
	}
	return sites, nil
}

// in returns a copy of kubectl's flags for one context: flags cache what they read of a kubeconfig.
func (r *reader) in(name string) *genericclioptions.ConfigFlags {
	f := genericclioptions.NewConfigFlags(true)
	own := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	f.AddFlags(own)
	r.kubectl.VisitAll(func(given *pflag.Flag) {
		if list, ok := given.Value.(pflag.SliceValue); ok {
			_ = own.Lookup(given.Name).Value.(pflag.SliceValue).Replace(list.GetSlice()) // the same type
		} else if given.Changed {
			_ = own.Set(given.Name, given.Value.String()) // it was parsed before
		}
	})
	f.Context = &name
	return f
}

// askAll reads all clusters in parallel, and returns their answers in the order in which they were named. The error of
// one comes beside the answers of the others.
func askAll[T any](c *call, ask func(ctx context.Context, s site, errs io.Writer) (T, error)) ([]T, error) {
	results, problems := make([]T, len(c.sites)), make([]error, len(c.sites))
	warnings := make([]bytes.Buffer, len(c.sites))
	var all sync.WaitGroup
	for i, s := range c.sites {
		all.Go(func() { results[i], problems[i] = ask(c.Context(), s, &warnings[i]) })
	}
	all.Wait()
	var answers []T
	for i, s := range c.sites {
		for line := range bytes.Lines(warnings[i].Bytes()) {
			if s.name != "" {
				line = append([]byte(s.name+": "), line...)
			}
			_, _ = c.ErrOrStderr().Write(line)
		}
		switch {
		case problems[i] == nil:
			answers = append(answers, results[i])
		case s.name != "":
			problems[i] = fmt.Errorf("context %s: %w", s.name, problems[i])
		}
	}
	return answers, errors.Join(problems...)
}
