// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"strings"
	"testing"
)

type container struct {
	Image                    string
	Command, Args, Variables []string
}

func TestFor(t *testing.T) {
	for name, tc := range map[string]struct {
		container container
		want      string
	}{
		"the image and its tag": {container{Image: "node:20.18"}, `NodeJS 20.18: the image is "node:20.18"`},
		"the command is surer than the image": {
			container{Image: "node:20", Command: []string{"tini", "--", "/usr/bin/python3.12", "x.py"}},
			`Python : it starts "python3.12"`,
		},
		"all that agrees": {
			container{Image: "eclipse-temurin:17-jre", Args: []string{"java", "-jar", "x.jar"}, Variables: []string{
				"PATH", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS",
			}},
			`JVM 17: it starts "java"; the image is "eclipse-temurin:17-jre"; it has the variable "JAVA_TOOL_OPTIONS"`,
		},
		"a script may start anything": {container{Image: "shop/web:1", Command: []string{"sh", "-c", "node x.js"}}, ""},
		"an argument is no program":   {container{Image: "shop/web:1", Args: []string{"--with=node"}}, ""},
		"a variable": {
			container{Variables: []string{"GOMEMLIMIT"}}, `Go : it has the variable "GOMEMLIMIT"`,
		},
		"nothing": {},
	} {
		c := tc.container
		s := For(c.Image, slices.Concat(c.Command, c.Args), c.Variables)
		got := ""
		if s.Runtime != nil {
			got = s.Runtime.Name + " " + s.Version + ": " + strings.Join(s.Evidence, "; ")
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
