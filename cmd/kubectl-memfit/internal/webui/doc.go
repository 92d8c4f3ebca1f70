// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package webui serves the page of htmlreport to one person's browser on this machine, for `kubectl memfit ui`. What
// it shows is read with that person's rights. So it answers only to an address with a token, which others who use the
// machine do not know, and only under this machine's own names, because a page from elsewhere may have a name of its
// own resolve to 127.0.0.1 (DNS rebinding).
package webui
