// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// identity is what a lab was started with. It is written last: a lab without it never came up.
type identity struct {
	Bin     string  `json:"bin"`
	Options Options `json:"options"`
	Images  []Image `json:"images"`
}

func (n *Node) identityFile() string { return n.data("lab.json") }

// Reusable reports why the running lab cannot be used as it is, or nil. A dead daemon is certain; a slow answer may
// only mean that the machine is compiling something, and replacing a lab ends a user's pods, so that gets a second
// chance.
func (n *Node) Reusable(ctx context.Context) error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	if id.Options.Kubernetes != n.Options.Kubernetes {
		return fmt.Errorf("the lab that is up runs Kubernetes %s, and %s is asked for",
			cmp.Or(id.Options.Kubernetes, "of an older lab"), n.Options.Kubernetes)
	}
	n.Options.CertManager = n.Options.CertManager || id.Options.CertManager // one that runs does no harm
	if id.Bin != n.Bin || id.Options != n.Options {
		return errors.New("the lab that is up has other programs or options")
	}
	if err := n.daemonsAlive(); err != nil {
		return err
	}
	return waitFor(ctx, 20*time.Second, n.Healthy)
}

// Refresh imports the images that changed since the running lab was started. Running pods keep what they have.
func (n *Node) Refresh(ctx context.Context) error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	for _, image := range n.Images {
		if slices.Contains(id.Images, image) { // the path names the content
			continue
		}
		if err := n.Import(ctx, image.Path); err != nil {
			return err
		}
	}
	for _, image := range id.Images { // those that were not asked for today are still there
		if !slices.ContainsFunc(n.Images, func(other Image) bool { return other.Ref == image.Ref }) {
			n.Images = append(n.Images, image)
		}
	}
	return n.writeIdentity()
}

func (n *Node) writeIdentity() error {
	return writeRecord(n.identityFile(), identity{Bin: n.Bin, Options: n.Options, Images: n.Images})
}

func (n *Node) readIdentity() (id identity, err error) {
	err = readRecord(n.identityFile(), &id, "no lab is up: `make lab-up` starts one")
	return id, err
}

// readRecord reads the parameters of a node from its file. Where the file does not exist, missing is the error.
func readRecord(path string, into any, missing string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(missing)
	}
	if err != nil {
		return fmt.Errorf("reading what the node was started with: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

func writeRecord(path string, record any) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Attach fills in what the running lab was started with.
func (n *Node) Attach() error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	n.Bin, n.Options, n.Images = id.Bin, id.Options, id.Images
	return nil
}
