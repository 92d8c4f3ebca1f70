// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import "testing"

func TestNew(t *testing.T) {
	tests := map[string]struct {
		env       map[string]string
		wantCache string
		wantErr   bool
	}{
		"MEMFIT_CACHE wins":             {env: map[string]string{"MEMFIT_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, wantCache: "/c"},
		"then the XDG cache":            {env: map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, wantCache: "/x/memfit"},
		"then the home directory":       {env: map[string]string{"HOME": "/h"}, wantCache: "/h/.cache/memfit"},
		"nothing set says what to set":  {env: nil, wantErr: true},
		"a relative cache is a mistake": {env: map[string]string{"MEMFIT_CACHE": "cache"}, wantErr: true},
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

// The longest socket below Run must fit sockaddr_un, which holds 107 bytes and a NUL.
func TestSocketPathFits(t *testing.T) {
	l, err := New(func(string) string { return "/home" })
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.ContainerdSocket() + ".ttrpc"); n > 107 {
		t.Errorf("socket path is %d bytes long, want at most 107", n)
	}
}
