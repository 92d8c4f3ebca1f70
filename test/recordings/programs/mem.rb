# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# One Ruby process with a memory habit: mem.rb MODE key=value... It runs until it is killed.
# Sizes are MiB, times are seconds of the recording; test/recordings/README.md describes the modes.

MODE = ARGV.shift
OPT = ARGV.to_h { |kv| kv.split("=") }
STARTED = Process.clock_gettime(Process::CLOCK_MONOTONIC)
KEPT = []

def num(name, fallback) = OPT.fetch(name, fallback).to_f
def jitter(x) = x * rand(0.6..1.4)
def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - STARTED
def objects(mib) = Array.new((mib * 6000).to_i) { |i| "row-#{i}-" + "x" * 90 }
def blob(mib) = "\x01" * (mib * (1 << 20)).to_i

def steady
  loop { objects(jitter(num("garbage", 1))); sleep 0.5 }
end

def warm
  full = 0.0
  loop do
    want = num("cache", 60) * (1 - Math.exp(-seconds / num("tau", 120)))
    while full < want
      KEPT << blob(0.25)
      full += 0.25
    end
    objects(jitter(0.5))
    sleep 0.5
  end
end

def burst
  due = num("period", 90)
  loop do
    if seconds > due
      held = Array.new((jitter(num("size", 80)) / 8).to_i) { blob(8) }
      sleep num("hold", 8)
      held.each(&:clear)
      due = seconds + jitter(num("period", 90))
    end
    objects(jitter(1))
    sleep 0.5
  end
end

# A report makes many small strings and keeps some: one string pins its heap page, and malloc keeps the rest.
def retain
  due = OPT.fetch("at", "240,430").split(",").map(&:to_f)
  loop do
    if due.any? && seconds > due.first
      due.shift
      rows = objects(jitter(num("size", 60)))
      KEPT << rows.each_slice(num("keep", 20).to_i).map(&:first)
    end
    objects(jitter(0.5))
    sleep 0.5
  end
end

def leak
  loop do
    objects(jitter(num("garbage", 1)))
    KEPT << objects(jitter(num("rate", 0.15)) / 2)
    sleep 0.5
  end
end

LIVE = objects(num("live", 20))
send(MODE)
