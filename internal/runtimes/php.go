// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "regexp"

var phpVersions = []VersionAt{{Text: regexp.MustCompile(`X-Powered-By: PHP/(\d+\.\d+\.\d+)`)}}

// PHP reads its memory_limit from php.ini, not from the environment, and it applies per request.
var _ = row(&Runtime{
	Name: "PHP", Title: "PHP", Order: 8,
	Images:   []Image{{Name: "php", Tagged: true}, {Name: "wordpress"}, {Name: "drupal"}, {Name: "nextcloud"}},
	Commands: []string{"php", "php*", "php-fpm", "php-fpm*"},
	Marks: []Mark{ // 8.2 of Debian
		{Program: true, Symbol: "php_module_startup", Versions: phpVersions},
		{File: "libphp*.so", Versions: phpVersions},
	},
	Knobs:  glibc(0, "", ""),
	Levers: glibcLevers("call it after a burst"),
	FullHeap: FullHeap{ // of one request: no process ends
		Words: []string{"Allowed memory size of"},
		Raise: "raise memory_limit in php.ini, which no profile reaches",
	},
	Advice: "PHP has no memory variable: pm.max_children times memory_limit must fit below the limit, and " +
		"pm.max_requests replaces workers that grow",
})
