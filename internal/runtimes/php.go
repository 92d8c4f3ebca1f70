// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "regexp"

var phpVersions = []VersionAt{{Text: regexp.MustCompile(`X-Powered-By: PHP/(\d+\.\d+\.\d+)`)}}

// PHP has no memory variable: it reads memory_limit, the limit of one request, from php.ini.
var _ = row(&Runtime{
	Name: "PHP", Title: "PHP", Order: 8,
	Images:   []Image{{Name: "php", Tagged: true}, {Name: "wordpress"}, {Name: "drupal"}, {Name: "nextcloud"}},
	Commands: []string{"php", "php*", "php-fpm", "php-fpm*"},
	Marks: []Mark{ // checked with Debian's 8.2
		{Program: true, Symbol: "php_module_startup", Versions: phpVersions},
		{File: "libphp*.so", Versions: phpVersions},
	},
	Knobs:  glibc(0, "", ""),
	Levers: glibcLevers("call it after a burst"),
	FullHeap: FullHeap{ // ends a request, not the process
		Words: []string{"Allowed memory size of"},
		Raise: "raise memory_limit in php.ini, which no profile reaches",
	},
	Advice: "PHP has no memory variable: pm.max_children times memory_limit must fit below the limit, and " +
		"pm.max_requests replaces workers that grow",
})
