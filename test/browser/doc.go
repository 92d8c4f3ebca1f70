// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser opens the page of `kubectl memfit report` in headless Chromium: made by the plugin itself, from an
// API server that has synthetic workloads. It holds it to what people need who have a small window, no mouse, another
// color vision, or a dark room, and to what the page promises: it loads nothing from elsewhere. Pictures of all of it
// are written to dist/browser, for people to look at. `make test-browser` installs Chromium where it can.
package browser
