// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/oom"
)

// MaxCheckpoint bounds a MemoryCheckpoint, in bytes of JSON. etcd refuses requests above 1.5 MiB, and other stores
// behind the API server (kine on MySQL) above 1 MiB. The ledger's own bound leaves space for all histories.
const MaxCheckpoint = 1 << 20

// Pack returns the contents of the checkpoint, without histories.
func (st *State) Pack() (v1alpha1.MemoryCheckpointStatus, error) {
	status := v1alpha1.MemoryCheckpointStatus{Version: v1alpha1.CheckpointVersion}
	var err error
	if status.Ledger, err = st.ledger.MarshalBinary(); err != nil {
		return status, fmt.Errorf("encoding the ledger: %w", err)
	}
	if status.Sizing, err = packed("the state of resizes", &st.rollout); err != nil {
		return status, err
	}
	status.Published, err = packed("the published sizes", &st.decided)
	return status, err
}

// HasHistory reports whether there are histories to store.
func (st *State) HasHistory() bool { return len(st.containers) > 0 }

// PackHistories adds the histories of containers as far as they fit into the checkpoint, in the order of their names.
// They come last because they can be measured again; counts and started changes cannot.
func (st *State) PackHistories(status *v1alpha1.MemoryCheckpointStatus) error {
	var err error
	if status.Observed, err = packed("what was observed", &st.measurements); err != nil {
		return err
	}
	left := MaxCheckpoint - envelope
	for _, part := range [][]byte{status.Ledger, status.Sizing, status.Published, status.Observed} {
		left -= base64.StdEncoding.EncodedLen(len(part))
	}
	for _, name := range slices.Sorted(maps.Keys(st.containers)) {
		for _, e := range st.containers[name] {
			packed, err := e.pack(name)
			if err != nil {
				return fmt.Errorf("encoding the history of container %s: %w", name, err)
			}
			left -= base64.StdEncoding.EncodedLen(len(packed.History)) + base64.StdEncoding.EncodedLen(len(packed.Evidence)) +
				len(name) + 48 // {"evidence":"","history":"","name":""},
			if len(status.Containers) == MaxContainers*programsKept || left < 0 {
				return nil
			}
			status.Containers = append(status.Containers, packed)
		}
	}
	return nil
}

// envelope is the size of metadata and field names: a name, a namespace and an owner of at most 253 bytes each, and
// managed fields.
const envelope = 4 << 10

// packed encodes a value; empty if there is nothing to store.
func packed(what string, state any) ([]byte, error) {
	data, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", what, err)
	}
	if string(data) == "{}" {
		return nil, nil
	}
	return data, nil
}

// MaxContainers is the API's bound of containers in one checkpoint and one recommendation.
const MaxContainers = 32

// ErrTooNew means that a newer memfit wrote the checkpoint.
var ErrTooNew = errors.New("was written by a newer memfit")

// Unpack sets the state from a checkpoint. An unreadable history starts empty and is listed in lost, because usage can
// be measured again. An unreadable ledger is an error, because kills cannot be counted again.
func (st *State) Unpack(c *v1alpha1.MemoryCheckpoint) (lost []error, err error) {
	if c.Status.Version > v1alpha1.CheckpointVersion {
		return nil, fmt.Errorf("MemoryCheckpoint %s/%s %w (version %d, this one reads up to %d)",
			c.Namespace, c.Name, ErrTooNew, c.Status.Version, v1alpha1.CheckpointVersion)
	}
	var ledger oom.Ledger
	if len(c.Status.Ledger) > 0 {
		if err := ledger.UnmarshalBinary(c.Status.Ledger); err != nil {
			return nil, fmt.Errorf("decoding the ledger of MemoryCheckpoint %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	containers := map[string][]*evidence{}
	for _, packed := range c.Status.Containers {
		e, err := unpackEvidence(&packed)
		if err != nil {
			lost = append(lost, fmt.Errorf("decoding the history of container %s in MemoryCheckpoint %s/%s: %w",
				packed.Name, c.Namespace, c.Name, err))
		}
		containers[packed.Name] = append(containers[packed.Name], e)
	}
	sizing, err := RolloutIn(c)
	if err != nil {
		return nil, err
	}
	var stored decided
	var seen measurements
	if err := unpacked(c, "the published sizes", c.Status.Published, &stored); err != nil {
		return nil, err
	}
	if err := unpacked(c, "what was observed", c.Status.Observed, &seen); err != nil { // it is observed again
		lost, seen = append(lost, err), measurements{}
	}
	st.ledger, st.containers, st.rollout = ledger, containers, sizing
	st.restore(stored, seen)
	return lost, nil
}

func unpacked(c *v1alpha1.MemoryCheckpoint, what string, data []byte, state any) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, state); err != nil {
		return fmt.Errorf("decoding %s in MemoryCheckpoint %s/%s: %w", what, c.Namespace, c.Name, err)
	}
	return nil
}
