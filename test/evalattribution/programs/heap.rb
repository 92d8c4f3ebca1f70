# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Fills its heap, drops most of it, and answers with counts: pages, slots, free slots.
def fill(kept)
  all = []
  600_000.times do |i|
    text = "x#{i}"
    all << text
    kept << text if (i % 20).zero?
  end
end

kept = []
fill(kept)
GC.start
puts 'ready'
$stdout.flush
while $stdin.gets
  s = GC.stat
  puts [s[:heap_allocated_pages], s[:heap_available_slots], s[:heap_free_slots], kept.size].join(' ')
  $stdout.flush
end
