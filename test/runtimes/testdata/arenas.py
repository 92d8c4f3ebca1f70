# Says how many malloc arenas eight live threads got. CPython 3.6 and later.
import ctypes, os, tempfile, threading

libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
done, ready = threading.Event(), threading.Barrier(9)

def work():
    libc.malloc(ctypes.c_size_t(100000))
    ready.wait()
    done.wait()

threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
for t in threads:
    t.start()
ready.wait()
with tempfile.NamedTemporaryFile() as f:
    out = ctypes.c_void_p(libc.fopen(f.name.encode(), b"w"))
    libc.malloc_info(0, out)
    libc.fclose(out)
    print("arenas=%d" % f.read().count(b"<heap nr="))
print("MALLOC_TRIM_THRESHOLD_=" + os.environ.get("MALLOC_TRIM_THRESHOLD_", ""))
done.set()
