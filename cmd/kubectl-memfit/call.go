// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// call is one call of a verb that reads a cluster.
type call struct {
	*cobra.Command

	args    []string
	cluster *cluster.Cluster
	// output is the value of -o.
	output  string
	options listing.Options
	// order is the value of --sort-by.
	order string
}

// runs sets the function that runs after the flags were checked.
func (r *reader) runs(run func(c *call) error) {
	r.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := &call{Command: cmd, args: args, output: r.output.value, order: r.output.sortBy}
		var err error
		if c.options, err = r.output.options(cmd); err != nil {
			return err
		}
		if c.cluster, err = r.open(); err != nil {
			return err
		}
		c.options.Namespaces = c.cluster.Namespace == ""
		return run(c)
	}
}

// recommendations reads those of the namespace.
func (c *call) recommendations() ([]v1alpha1.MemoryRecommendation, error) {
	return c.cluster.Recommendations(c.Context(), c.cluster.Namespace)
}

// workload reads the recommendation of the workload in the arguments.
func (c *call) workload() (*v1alpha1.MemoryRecommendation, error) {
	recs, err := c.recommendations()
	if err != nil {
		return nil, err
	}
	return c.find(recs, c.args[0])
}

func (c *call) find(recs []v1alpha1.MemoryRecommendation, name string) (*v1alpha1.MemoryRecommendation, error) {
	return report.Find(recs, name, place(c.cluster.Namespace))
}

// page prints one object: for users with write, otherwise as fields. kind is its kind, unless the value has one.
func (c *call) page(kind string, value any, write func(w io.Writer, c listing.Colors) error) error {
	if c.options.Format.IsPage() {
		return write(c.OutOrStdout(), c.options.Colors)
	}
	return listing.Object(c.OutOrStdout(), c.options.Format, kind, value)
}

func (c *call) warn(format string, args ...any) { c.note("warning: "+format, args...) }

// note writes a line to standard error.
func (c *call) note(format string, args ...any) { fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...) }
