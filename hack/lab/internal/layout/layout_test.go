// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	tests := map[string]struct {
		env       map[string]string
		wantCache string
		wantErr   bool
	}{
		"MEMFIT_CACHE comes first": {
			env: map[string]string{"MEMFIT_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, wantCache: "/c",
		},
		"then the XDG cache": {
			env: map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, wantCache: "/x/memfit",
		},
		"then the home directory":      {env: map[string]string{"HOME": "/h"}, wantCache: "/h/.cache/memfit"},
		"no variable is an error":      {env: nil, wantErr: true},
		"a relative cache is an error": {env: map[string]string{"MEMFIT_CACHE": "cache"}, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := New(func(key string) string { return tc.env[key] })
			if (err != nil) != tc.wantErr {
				t.Fatalf("New() error = %v, want an error: %v", err, tc.wantErr)
			}
			if got.Cache != tc.wantCache {
				t.Errorf("Cache = %q, want %q", got.Cache, tc.wantCache)
			}
		})
	}
}

// TestNamedLabsAreApart: `lab down` of one lab removes no directory of another.
func TestNamedLabsAreApart(t *testing.T) {
	lab := func(name string) Layout {
		l, err := New(func(key string) string { return map[string]string{"HOME": "/h", "MEMFIT_LAB": name}[key] })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, a, b := lab(""), lab("a"), lab("a-b")
	for _, pair := range [][2]Layout{{first, a}, {a, b}, {first, b}} {
		for _, dirs := range [][2]string{
			{pair[0].State, pair[1].State},
			{pair[0].Run, pair[1].Run},
			{pair[0].CgroupRoot(), pair[1].CgroupRoot()},
			{pair[0].Lock(), pair[1].Lock()},
		} {
			if dirs[0] == dirs[1] || strings.HasPrefix(dirs[1], dirs[0]+"/") || strings.HasPrefix(dirs[0], dirs[1]+"/") {
				t.Errorf("%s and %s are equal, or one is below the other", dirs[0], dirs[1])
			}
		}
	}
	for _, bad := range []string{"../x", "A", "a/b", "-a", strings.Repeat("a", 21)} {
		if _, err := New(
			func(key string) string { return map[string]string{"HOME": "/h", "MEMFIT_LAB": bad}[key] },
		); err == nil {
			t.Errorf("MEMFIT_LAB=%q: no error", bad)
		}
	}
}

// The longest socket below Run must fit sockaddr_un, which holds 107 bytes and a NUL.
func TestSocketPathFits(t *testing.T) {
	l, err := New(func(key string) string {
		return map[string]string{"HOME": "/home", "MEMFIT_LAB": strings.Repeat("a", 20)}[key]
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.ContainerdSocket() + ".ttrpc"); n > 107 {
		t.Errorf("socket path is %d bytes long, want at most 107", n)
	}
}
