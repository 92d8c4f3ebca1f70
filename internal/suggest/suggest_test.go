// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"strings"
	"testing"
)

func TestFor(t *testing.T) {
	for name, tc := range map[string]struct {
		container Container
		want      string
	}{
		"the image and its tag": {Container{Image: "node:20.18"}, `NodeJS 20.18: the image is "node:20.18"`},
		"the command is surer than the image": {
			Container{Image: "node:20", Command: []string{"tini", "--", "/usr/bin/python3.12", "x.py"}},
			`Python : it starts "python3.12"`,
		},
		"all that agrees": {
			Container{Image: "eclipse-temurin:17-jre", Args: []string{"java", "-jar", "x.jar"}, Variables: []string{
				"PATH", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS",
			}},
			`JVM 17: it starts "java"; the image is "eclipse-temurin:17-jre"; it has the variable "JAVA_TOOL_OPTIONS"`,
		},
		"a script may start anything": {Container{Image: "shop/web:1", Command: []string{"sh", "-c", "node x.js"}}, ""},
		"an argument is no program":   {Container{Image: "shop/web:1", Args: []string{"--with=node"}}, ""},
		"a variable":                  {Container{Variables: []string{"GOMEMLIMIT"}}, `Go : it has the variable "GOMEMLIMIT"`},
		"nothing":                     {},
	} {
		s := For(tc.container)
		got := ""
		if s.Runtime != nil {
			got = s.Runtime.Name + " " + s.Version + ": " + strings.Join(s.Evidence, "; ")
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
