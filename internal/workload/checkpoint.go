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

// MaxCheckpoint bounds a MemoryCheckpoint, in bytes of JSON. etcd refuses requests above 1.5 MiB, and kine on MySQL
// above 1 MiB. The ledger has its own bound, which leaves space for all histories.
const MaxCheckpoint = 1 << 20

// Pack returns the contents of the checkpoint without histories and measurements (see [State.PackHistories]).
func (st *State) Pack() (v1alpha1.MemoryCheckpointStatus, error) {
	status := v1alpha1.MemoryCheckpointStatus{Version: v1alpha1.CheckpointVersion}
	var err error
	if status.Ledger, err = st.ledger.MarshalBinary(); err != nil {
		return status, fmt.Errorf("encoding the ledger: %w", err)
	}
	if status.Sizing, err = packed("the state of the rollout", &st.rollout); err != nil {
		return status, err
	}
	status.Published, err = packed("the published sizes", &st.decided)
	return status, err
}

// HasHistory reports whether there are histories to store.
func (st *State) HasHistory() bool { return len(st.containers) > 0 }

// PackHistories adds measurements and the histories of containers, in the order of their names, until the checkpoint is
// full. Histories that do not fit are omitted without an error, because usage can be measured again.
func (st *State) PackHistories(status *v1alpha1.MemoryCheckpointStatus) error {
	var err error
	if status.Observed, err = packed("the measurements", &st.measurements); err != nil {
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

// envelope bounds the size of metadata and field names in a checkpoint, in bytes.
const envelope = 4 << 10

// packed encodes a value as JSON; nil: an empty value.
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

// MaxContainers is the API's bound of container names in one checkpoint and one recommendation.
const MaxContainers = 32

// ErrTooNew means that a newer memfit wrote the checkpoint.
var ErrTooNew = errors.New("was written by a newer memfit")

// Unpack sets the state from a checkpoint. An unreadable history starts empty and is listed in lost, because usage can
// be measured again. Any other unreadable part is an error, for example the ledger: kills cannot be counted again.
func (st *State) Unpack(c *v1alpha1.MemoryCheckpoint) (lost []error, err error) {
	if c.Status.Version > v1alpha1.CheckpointVersion {
		return nil, fmt.Errorf("MemoryCheckpoint %s/%s %w (version %d, this memfit reads up to %d)",
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
	if err := unpacked(c, "the measurements", c.Status.Observed, &seen); err != nil { // can be measured again
		lost, seen = append(lost, err), measurements{}
	}
	st.ledger, st.containers, st.rollout = ledger, containers, sizing
	st.restore(stored, seen)
	return lost, nil
}

// unpacked decodes the output of packed into state.
func unpacked(c *v1alpha1.MemoryCheckpoint, what string, data []byte, state any) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, state); err != nil {
		return fmt.Errorf("decoding %s in MemoryCheckpoint %s/%s: %w", what, c.Namespace, c.Name, err)
	}
	return nil
}
