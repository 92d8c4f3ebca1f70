# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# The program of the story "What inflates memory in Ruby?": a multi-threaded server whose threads make strings of all
# sizes and keep few of them. Ruby's own heap stays small; the heaps of the system's allocator grow.
#
#   GET /work?rounds=60   every thread makes strings, and keeps some for a while; reports the mean RSS meanwhile
#   GET /trim             malloc_trim, as the article's patch calls it in a full collection
#   GET /stats            what Ruby and the kernel report; sizes are bytes
require 'fiddle'
require 'json'
require 'socket'
require 'uri'

THREADS = 16
KEPT_PERCENT = 12 # of the strings of a round, until the thread's next rounds replace them

# A pool of threads that live as long as the server, as those of Puma do.
JOBS = Queue.new
THREADS.times do |n|
  Thread.new do
    random = Random.new(n)
    kept = Array.new(400)
    loop do
      rounds, done = JOBS.pop
      rounds.times do
        strings = Array.new(120) { 'x' * (1 << random.rand(7..15)) } # 128 bytes to 32 KiB
        strings.each { |s| kept[random.rand(kept.size)] = s if random.rand(100) < KEPT_PERCENT }
        Thread.pass # as a thread does that waits for its client
      end
      kept.fill(nil) { |i| random.rand(100) < 75 ? nil : kept[i] } # most connections end
      done << n
    end
  end
end

def rss = File.read('/proc/self/status')[/VmRSS:\s+(\d+)/, 1].to_i * 1024

# work returns the mean RSS while the threads worked.
def work(rounds)
  done = Queue.new
  samples = []
  THREADS.times { JOBS << [rounds, done] }
  while done.size < THREADS
    samples << rss
    sleep 0.02
  end
  GC.start
  { working: samples.sum / samples.size }
end

TRIM = Fiddle::Function.new(Fiddle.dlopen(nil)['malloc_trim'], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)

# Like the article's patch of Ruby: a trim after each full collection.
if ENV['TRIM']
  Thread.new do
    seen = 0
    loop do
      sleep 0.02
      major = GC.stat(:major_gc_count)
      TRIM.call(0) if major != seen
      seen = major
    end
  end
end

def stats
  s = GC.stat
  { rss: rss, heapPages: s[:heap_allocated_pages], heapLive: s[:heap_live_slots], heapFree: s[:heap_free_slots],
    rubyHeap: s[:heap_allocated_pages] * GC::INTERNAL_CONSTANTS[:HEAP_PAGE_OBJ_LIMIT] * 40 }
end

trap('TERM') { exit!(0) }
server = TCPServer.new('0.0.0.0', Integer(ENV.fetch('PORT', '8080')))
loop do
  client = server.accept
  line = client.gets.to_s
  nil until client.gets.to_s.strip.empty?
  uri = URI(line.split[1] || '/')
  status = '200 OK'
  more = {}
  case uri.path
  when '/work' then more = work(Integer(URI.decode_www_form(uri.query.to_s).to_h.fetch('rounds', '60')))
  when '/trim' then TRIM.call(0)
  when '/stats' then nil
  else status = '404 Not Found'
  end
  body = stats.merge(more).to_json
  client.write "HTTP/1.1 #{status}\r\nContent-Type: application/json\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}"
  client.close
end
