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

// identity holds the parameters of a lab. Start writes it last: a lab without it did not start completely.
type identity struct {
	Bin     string  `json:"bin"`
	Options Options `json:"options"`
	Images  []Image `json:"images"`
}

func (n *Node) identityFile() string { return n.data("lab.json") }

// Reusable returns nil if the running lab is healthy and has the wanted options, otherwise why it must be replaced. The
// lab has 20 s to become healthy, because a busy machine is slow and a replacement ends the user's pods. If a daemon is
// dead, Reusable does not wait.
func (n *Node) Reusable(ctx context.Context) error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	if id.Options.Kubernetes != n.Options.Kubernetes {
		return fmt.Errorf("the running lab has Kubernetes %s instead of %s",
			cmp.Or(id.Options.Kubernetes, "of an unknown version"), n.Options.Kubernetes)
	}
	n.Options.CertManager = n.Options.CertManager || id.Options.CertManager // keep it if it runs
	if id.Bin != n.Bin || id.Options != n.Options {
		return errors.New("the running lab has other programs or options")
	}
	if err := n.daemonsAlive(); err != nil {
		return err
	}
	return waitFor(ctx, 20*time.Second, n.Healthy)
}

// Refresh imports the images that changed since the running lab was started. Running pods keep their images.
func (n *Node) Refresh(ctx context.Context) error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	for _, image := range n.Images {
		if slices.Contains(id.Images, image) { // the path contains a hash of the content
			continue
		}
		if err := n.Import(ctx, image.Path); err != nil {
			return err
		}
	}
	for _, image := range id.Images { // other images are still imported
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

// readRecord reads the parameters of a node from a file. If the file does not exist, missing is the error message.
func readRecord(path string, into any, missing string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(missing)
	}
	if err != nil {
		return fmt.Errorf("reading the parameters of the node: %w", err)
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

// Attach sets the fields of n to the parameters of the running lab.
func (n *Node) Attach() error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	n.Bin, n.Options, n.Images = id.Bin, id.Options, id.Images
	return nil
}
