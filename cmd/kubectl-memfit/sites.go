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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// site is a cluster that is asked.
type site struct {
	*cluster.Cluster
	// name is its context where several are asked, else empty.
	name string
}

// sites prepare to read from the clusters that are asked for. Nothing is read yet.
func (r *reader) sites() ([]site, error) {
	names := []string{""}
	if len(r.contexts) > 0 {
		names = nil
		for _, name := range r.contexts {
			if name == "" {
				return nil, errors.New("--context names an empty context: remove it, or the comma beside it")
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
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

// query is what a verb that lists was asked for.
type query struct {
	sites   []site
	options listing.Options
	// order is the word of --sort-by, or the usual one.
	order string
}

// lists makes cmd a verb that lists what one or several clusters have. orders are words for --sort-by, the usual one
// first.
func lists(
	cmd *cobra.Command, orders []string, run func(cmd *cobra.Command, args []string, q query) error,
) *reader {
	r, o := reading(cmd, allClusters), listFlags(cmd, listing.OfList, orders)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		options, order, err := o.options(cmd)
		if err != nil {
			return err
		}
		sites, err := r.sites()
		if err != nil {
			return err
		}
		options.Clusters = len(sites) > 1
		options.Namespaces = sites[0].Namespace == "" ||
			slices.ContainsFunc(sites, func(s site) bool { return s.Namespace != sites[0].Namespace })
		return run(cmd, args, query{sites, options, order})
	}
	return r
}

// askAll reads all clusters in parallel, and returns their answers in the order in which they were named. The error of
// one comes beside the answers of the others.
func askAll[T any](
	cmd *cobra.Command, sites []site, ask func(ctx context.Context, s site, errs io.Writer) (T, error),
) ([]T, error) {
	results, problems := make([]T, len(sites)), make([]error, len(sites))
	warnings := make([]bytes.Buffer, len(sites))
	var all sync.WaitGroup
	for i, s := range sites {
		all.Go(func() { results[i], problems[i] = ask(cmd.Context(), s, &warnings[i]) })
	}
	all.Wait()
	var answers []T
	for i, s := range sites {
		for line := range bytes.Lines(warnings[i].Bytes()) {
			if s.name != "" {
				line = append([]byte(s.name+": "), line...)
			}
			_, _ = cmd.ErrOrStderr().Write(line)
		}
		switch {
		case problems[i] == nil:
			answers = append(answers, results[i])
		case s.name != "":
			problems[i] = fmt.Errorf("context %s: %w", s.name, problems[i])
		}
	}
	if err := errors.Join(problems...); err != nil {
		return answers, err
	}
	return answers, nil
}
