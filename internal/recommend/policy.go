// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

// withDefaults fills in what is zero. -1 is how a caller sets 0 percent.
func (p Policy) withDefaults() Policy {
	d := DefaultPolicy()
	percent := func(v *int32, def int32) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = 0
		}
	}
	percent(&p.HeadroomPercent, d.HeadroomPercent)
	percent(&p.MinChangePercent, d.MinChangePercent)
	percent(&p.OOMFactorPercent, d.OOMFactorPercent)
	if p.Posture == "" {
		p.Posture = d.Posture
	}
	if p.LimitMin == 0 {
		p.LimitMin = d.LimitMin
	}
	if p.RequestMin == 0 {
		p.RequestMin = d.RequestMin
	}
	if p.OOMMinIncrease == 0 {
		p.OOMMinIncrease = d.OOMMinIncrease
	}
	return p
}
