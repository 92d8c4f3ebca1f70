// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import "fmt"

// Probe reads a few words at any addresses of a process, only on resident pages. It clears its buffer after each read.
type Probe struct {
	memory Memory
	buffer [PageSize]byte
}

// NewProbe returns a probe of a process.
func NewProbe(m Memory) *Probe { return &Probe{memory: m} }

// Words reads as many words as fit into a slice, at most a page of them, at an address that is a multiple of 8.
func (p *Probe) Words(addr uint64, into []uint64) error {
	length := uint64(len(into)) * 8
	if addr%8 != 0 || length == 0 || length > PageSize || addr+length < addr {
		return fmt.Errorf("%w: %d words at %#x", ErrAbsent, len(into), addr)
	}
	first := addr &^ (PageSize - 1)
	last := (addr + length - 1) &^ (PageSize - 1)
	runs, err := p.memory.Resident(first, last+PageSize)
	if err != nil {
		return err
	}
	if ResidentBytes(runs, addr, addr+length) != length {
		return fmt.Errorf("%w: %d words at %#x are not in memory", ErrAbsent, len(into), addr)
	}
	b := p.buffer[:length]
	defer clear(b)
	if _, err := p.memory.ReadAt(b, addr); err != nil {
		return err
	}
	for i := range into {
		into[i] = le.Uint64(b[8*i:])
	}
	return nil
}

// Word reads one word.
func (p *Probe) Word(addr uint64) (uint64, error) {
	var one [1]uint64
	err := p.Words(addr, one[:])
	return one[0], err
}
