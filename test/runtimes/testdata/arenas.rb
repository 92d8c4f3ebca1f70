# Says how many malloc arenas eight live threads got.
require "fiddle"
require "tempfile"

libc = Fiddle.dlopen("libc.so.6")
call = ->(name, args, ret) { Fiddle::Function.new(libc[name], args, ret) }
malloc = call["malloc", [Fiddle::TYPE_LONG], Fiddle::TYPE_VOIDP]
fopen = call["fopen", [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP]
info = call["malloc_info", [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT]
fclose = call["fclose", [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT]

ready, done = Queue.new, Queue.new
8.times { Thread.new { malloc.call(100_000); ready << 1; done.pop } }
8.times { ready.pop }
Tempfile.create("arenas") do |f|
  out = fopen.call(f.path, "w")
  info.call(0, out)
  fclose.call(out)
  puts "arenas=#{File.read(f.path).scan("<heap nr=").size}"
end
puts "MALLOC_TRIM_THRESHOLD_=#{ENV["MALLOC_TRIM_THRESHOLD_"]}"
