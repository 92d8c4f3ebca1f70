// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Store keeps the record of each daemon in its own file, so that a crash damages at most one record.
type Store struct{ Dir string }

// Run starts a daemon and writes its record.
func (s Store) Run(spec Spec) (Record, error) {
	r, err := Start(spec)
	if err != nil {
		return Record{}, err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return Record{}, errors.Join(err, r.Stop())
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return Record{}, errors.Join(err, r.Stop())
	}
	if err := os.WriteFile(s.file(r.Name), append(data, '\n'), 0o644); err != nil {
		// Without a record, `lab down` would not stop it.
		return Record{}, errors.Join(fmt.Errorf("writing the record of %s: %w", r.Name, err), r.Stop())
	}
	return r, nil
}

// List returns the records, oldest first, without damaged ones: Node.Down finds such processes by their arguments.
func (s Store) List() ([]Record, error) {
	files, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the lab's processes: %w", err)
	}
	var records []Record
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(s.Dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the record %s: %w", f.Name(), err)
		}
		var r Record
		if json.Unmarshal(data, &r) == nil && r.PID > 1 {
			records = append(records, r)
		}
	}
	slices.SortFunc(
		records, func(a, b Record) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Name, b.Name)) },
	)
	return records, nil
}

// Get returns the record of one daemon.
func (s Store) Get(name string) (Record, error) {
	records, err := s.List()
	if err != nil {
		return Record{}, err
	}
	for _, r := range records {
		if r.Name == name {
			return r, nil
		}
	}
	return Record{}, fmt.Errorf("the lab has no process %q: `lab status` lists them", name)
}

// Forget removes the record of a stopped daemon.
func (s Store) Forget(name string) error {
	if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of %s: %w", name, err)
	}
	return nil
}

func (s Store) file(name string) string { return filepath.Join(s.Dir, name+".json") }
