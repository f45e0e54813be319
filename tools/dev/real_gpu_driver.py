#!/usr/bin/env python3
"""Asks an OpenCL driver directly, for real_gpu.sh. Needs nothing but Python 3.9 and the loader's library.

    real_gpu_driver.py facts LIBOPENCL LOG   what the device says, which constructs its compiler takes, how exact its arithmetic is
    real_gpu_driver.py host LIBOPENCL        what the host pays for launches, events, reads and writes

CLNET_DEVICE=gpu (the default), cpu or all names the type of device.
"""
import ctypes
import math
import os
import pathlib
import random
import struct
import sys
import time

TEXTS = {"name": 0x102B, "driver": 0x102D, "version": 0x102F, "OpenCL C": 0x103D, "extensions": 0x1030}
NUMBERS = {"compute units": 0x1002, "work-group": 0x1004, "MHz": 0x100C, "largest allocation": 0x1010, "images": 0x1016,
           "parameter bytes": 0x1017, "alignment bits": 0x1019, "flags of f32": 0x101B, "cache line": 0x101D, "cache": 0x101E,
           "memory": 0x101F, "local memory": 0x1023, "ns of the profiling timer": 0x1025, "native float width": 0x1036,
           "NVIDIA: capability, major": 0x4000, "NVIDIA: capability, minor": 0x4001, "NVIDIA: registers of a group": 0x4002,
           "NVIDIA: warp": 0x4003}
BUILD_LOG, READ_WRITE, COPY_HOST, ALLOC_HOST, MAP_BOTH, PROFILING = 0x1183, 1, 32, 16, 3, 2
STATUS = 0x11D3
KERNEL_GROUP, KERNEL_MULTIPLE = 0x11B0, 0x11B3

# ---- what clnet's kernels for GPUs are written with, and what later ones might be: name, source, further options

USED = [
    ("shfl.sync", r"""kernel void k(global float *x) { float r;
  __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(r) : "f"(x[get_global_id(0)]), "r"(1));
  x[get_global_id(0)] = r; }"""),
    ("ldmatrix of a local pointer", r"""kernel void k(global uint *x) { local ushort t[512] __attribute__((aligned(16))); uint w[4];
  t[get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE);
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"((uint)(ulong)(t + get_local_id(0) % 32 * 8)) : "memory");
  x[get_global_id(0)] = w[0] + w[3]; }"""),
    *((f"mma of {kind}", r"""kernel void k(global float *x, const uint a) { float s[4] = {0};
  __asm__ volatile("mma.sync.aligned.SHAPE {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(a), "r"(a), "r"(a), "r"(a), "r"(a), "r"(a));
  x[get_global_id(0)] = s[0] + s[3]; }""".replace("SHAPE", f"m16n8k{k}.row.col.f32.{kind}.{kind}.f32"))
      for kind, k in (("f16", 16), ("bf16", 16), ("tf32", 8))),
    ("cvt.rna.tf32", r"""kernel void k(global float *x) { uint r;
  __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x[0])); x[1] = as_float(r); }"""),
    ("halves without cl_khr_fp16", r"""kernel void k(global const half *restrict h, global half *y, const ulong at) {
  vstore_half_rte(vload_half(3, h + at), 2, y + at); }"""),
    ("halves in private memory", r"""kernel void k(global float *x) { ushort b[2];
  vstore_half_rte(x[0], 1, (private half *)b); x[1] = vload_half(1, (private const half *)b); }"""),
    ("aligned local memory as vectors", r"""kernel void k(global float *x) { local float t[256] __attribute__((aligned(16)));
  t[get_local_id(0)] = x[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);
  const float4 v = *(local const float4 *)(t + get_local_id(0) / 4 * 4); x[get_global_id(0)] = v.x + v.w; }"""),
    ("unrolling pragmas", r"""kernel void k(global float *x, const int n) {
  _Pragma("unroll") for (int i = 0; i < 4; ++i) x[i] += 1;
#pragma unroll 1
  for (int i = 0; i < n; ++i) x[i] *= 2; }"""),
    ("contraction turned off", r"""#pragma OPENCL FP_CONTRACT OFF
kernel void k(global float *x) { x[0] = x[1] * x[2] + x[3]; }"""),
    ("arguments of char, uchar, long", r"""kernel void k(global uchar *restrict x, const char a, const uchar b, const long c) {
  x[c] = (uchar)(a + b); }"""),
    ("inlined functions of arrays", r"""static __attribute__((always_inline)) inline void f(float (*p)[4], const local float *l) {
  for (int i = 0; i < 4; ++i) p[1][i] = l[i]; }
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k(global float *x) { local float l[64]; float p[2][4];
  l[get_local_id(0)] = x[0]; barrier(CLK_LOCAL_MEM_FENCE); f(p, l); x[get_global_id(0)] = p[1][3]; }"""),
    ("integer atomics", r"""kernel void k(volatile global int *x) { atomic_add(x, 2); atomic_cmpxchg(x + 1, 0, 1); }"""),
    ("double and hexadecimal numbers", r"""kernel void k(global float *x) { const double d = x[0] * 0x1.45f3068p-3;
  x[1] = (float)(d - floor(d)) * 0x1p-24f; }"""),
]
POSSIBLE = [
    ("arithmetic in half", r"""#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void k(global float *x) { const half h = (half)x[0]; x[1] = h * h + h; }"""),
    ("sub_group_shuffle_xor", "kernel void k(global float *x) { x[0] = sub_group_shuffle_xor(x[1], 1u); }", "-cl-std=CL3.0"),
    ("cp.async", r"""kernel void k(global float *x) { local float t[64] __attribute__((aligned(16)));
  __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;"
    :: "r"((uint)(ulong)t), "l"(x) : "memory"); barrier(CLK_LOCAL_MEM_FENCE); x[100] = t[3]; }"""),
    ("dp4a", r"""kernel void k(global int *x) { int r;
  __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x[0]), "r"(x[1]), "r"(x[2])); x[3] = r; }"""),
    ("mma of s8", r"""kernel void k(global int *x, const int a) { int s[4] = {0};
  __asm__ volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(a), "r"(a), "r"(a), "r"(a), "r"(a), "r"(a)); x[0] = s[0] + s[3]; }"""),
    ("f32 atomics", r"""kernel void k(global float *x) { float r;
  __asm__ volatile("atom.global.add.f32 %0, [%1], %2;" : "=f"(r) : "l"(x), "f"(1.0f)); }"""),
    ("a limit on registers", "kernel void k(global float *x) { x[0] = 1; }", "-cl-nv-maxrregcount=128"),
    # Hopper's own matrix instruction, for sm_90a alone.
    ("wgmma", r"""kernel void k(global float *x, const ulong a) { float s[4] = {0};
  __asm__ volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.fence.sync.aligned; "
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, p, 1, 1, 0, 0; "
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }"
    : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "l"(a) : "memory"); x[get_global_id(0)] = s[0] + s[3]; }"""),
]
ARITHMETIC = r"""kernel void k(global const float *a, global const float *b, global float *y) {
  const size_t i = get_global_id(0); const float x = a[i], z = b[i], c = -(x * z);
  y[7 * i] = x / z; y[7 * i + 1] = sqrt(x); y[7 * i + 2] = exp(z - 2.0f); y[7 * i + 3] = log(x); y[7 * i + 4] = tanh(z);
  y[7 * i + 5] = x * z + c; y[7 * i + 6] = x * 0x1p-130f; }"""
EXACT = {"/": lambda x, z: x / z, "sqrt": lambda x, z: math.sqrt(x), "exp": lambda x, z: math.exp(single(z - 2)),
         "log": lambda x, z: math.log(x), "tanh": lambda x, z: math.tanh(z)}


class OpenCL:
    """One device, a context and a queue: as much as it takes to build and run."""

    def __init__(self, library):
        self.cl = ctypes.CDLL(library)
        kinds = {"gpu": 4, "cpu": 2}
        kind = kinds.get(os.environ.get("CLNET_DEVICE", "gpu"), 0xFFFFFFFF)
        platforms, count = (ctypes.c_void_p * 8)(), ctypes.c_uint()
        self.cl.clGetPlatformIDs(8, platforms, ctypes.byref(count))
        self.device = ctypes.c_void_p()
        for platform in platforms[:count.value]:
            if not self.device and self.cl.clGetDeviceIDs(ctypes.c_void_p(platform), ctypes.c_ulong(kind), 1, ctypes.byref(self.device), None):
                self.device = ctypes.c_void_p()
        if not self.device:
            raise SystemExit(f"no such device in {count.value} platforms")
        self.context = self.make("clCreateContext", None, 1, ctypes.byref(self.device), None, None)
        self.queue = self.new_queue(0)

    def make(self, function, *arguments):
        """What clCreate... or clEnqueueMapBuffer returns, with the error as the last argument."""
        error = ctypes.c_int()
        call = getattr(self.cl, function)
        call.restype = ctypes.c_void_p
        made = ctypes.c_void_p(call(*arguments, ctypes.byref(error)))
        if error.value:
            raise RuntimeError(f"{function}: error {error.value}")
        return made

    def new_queue(self, properties):
        return self.make("clCreateCommandQueue", self.context, self.device, ctypes.c_ulong(properties))

    def buffer(self, size, flags=READ_WRITE, data=None):
        return self.make("clCreateBuffer", self.context, ctypes.c_ulong(flags), ctypes.c_size_t(size), data)

    def told(self, what):
        """Bytes, or None."""
        data, size = ctypes.create_string_buffer(16384), ctypes.c_size_t()
        failed = self.cl.clGetDeviceInfo(self.device, what, ctypes.c_size_t(len(data)), data, ctypes.byref(size))
        return None if failed else data.raw[:size.value]

    def build(self, source, options=""):
        """The program, or None, and what the compiler said."""
        text = ctypes.c_char_p(source.encode())
        program = self.make("clCreateProgramWithSource", self.context, 1, ctypes.byref(text), None)
        flags = options if "-cl-std" in options else f"-cl-std=CL1.2 {options}"
        code = self.cl.clBuildProgram(program, 1, ctypes.byref(self.device), (flags + " -w").encode(), None, None)
        log = ctypes.create_string_buffer(1 << 16)
        self.cl.clGetProgramBuildInfo(program, self.device, BUILD_LOG, ctypes.c_size_t(len(log)), log, None)
        return (None if code else program), log.value.decode(errors="replace").strip() or f"code {code}"

    def kernel(self, program, name="k", *arguments):
        kernel = self.make("clCreateKernel", program, name.encode())
        for place, argument in enumerate(arguments):
            self.cl.clSetKernelArg(kernel, place, ctypes.c_size_t(ctypes.sizeof(argument)), ctypes.byref(argument))
        return kernel

    def computed(self, program, inputs, count):
        """`count` floats that kernel k makes of lists of floats, a work-item for each element."""
        buffers = [self.buffer(4 * len(values), READ_WRITE | COPY_HOST, struct.pack(f"{len(values)}f", *values)) for values in inputs]
        result, output = ctypes.create_string_buffer(4 * count), self.buffer(4 * count)
        kernel, extent = self.kernel(program, "k", *buffers, output), ctypes.c_size_t(len(inputs[0]))
        code = self.cl.clEnqueueNDRangeKernel(self.queue, kernel, 1, None, ctypes.byref(extent), None, 0, None, None)
        code = code or self.cl.clEnqueueReadBuffer(self.queue, output, 1, ctypes.c_size_t(0), ctypes.c_size_t(4 * count), result, 0, None, None)
        return None if code else struct.unpack(f"{count}f", result.raw)


# ---- facts


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def ulps(got, exact):
    """How far a float is from the exact result, in distances of floats there."""
    return abs(got - exact) / 2.0 ** (max(math.frexp(exact)[1], -125) - 24)


def try_constructs(cl, log):
    taken, refused = 0, []
    for name, source, *options in USED + POSSIBLE:
        program, said = cl.build(source, *options)
        log.append(f"---- {name}: {'taken' if program else 'REFUSED'}\n{said}")
        if program:
            taken += 1
        else:
            lines = [line for line in said.splitlines() if "error" in line or "fatal" in line] or [said.splitlines()[0]]
            refused.append(("kernels use it" if name in {entry[0] for entry in USED} else "no kernel uses it", name, lines[0][:110]))
    print(f"compiler: takes {taken} of {len(USED + POSSIBLE)} constructs, {len(USED)} of which kernels for GPUs use")
    for use, name, reason in refused:
        print(f"  refused ({use}): {name}: {reason}")


def try_arithmetic(cl):
    program, said = cl.build(ARITHMETIC)
    generator, count = random.Random(1), 4096
    a, b = ([single(generator.uniform(0.1, 4)) for _ in range(count)] for _ in range(2))
    got = program and cl.computed(program, [a, b], 7 * count)
    if not got:
        print(f"arithmetic: did not run: {said.splitlines()[0]}")
        return
    worst = {name: max(ulps(got[7 * i + place], exact(a[i], b[i])) for i in range(count)) for place, (name, exact) in enumerate(EXACT.items())}
    fused = any(got[7 * i + 5] != 0 for i in range(count))
    lost = any(got[7 * i + 6] != single(a[i] * 2.0 ** -130) for i in range(count))
    print("arithmetic, ulp at most: " + ", ".join(f"{name} {error:.2f}" for name, error in worst.items()) +
          f"; x*z+c is {'fused' if fused else 'rounded twice'}; subnormal numbers are {'lost' if lost else 'kept'}")


def facts(library, log_path):
    cl, log = OpenCL(library), []
    for name, what in {**TEXTS, **NUMBERS}.items():
        data = cl.told(what)
        log.append(f"{name}: {data and (data.split(bytes(1))[0].decode() if name in TEXTS else int.from_bytes(data, 'little'))}")
    try:
        try_constructs(cl, log)
        try_arithmetic(cl)
    finally:
        pathlib.Path(log_path).write_text("\n".join(log) + "\n")


# ---- what the host pays

IDLE = r"""kernel void few(global float *x, const int n) { if (n < 0) x[get_global_id(0)] = n; }
kernel void many(global float *a, global float *b, global float *c, global float *d, const ulong e, const ulong f, const ulong g,
                 const ulong h, const int i, const int j, const int k, const float l) {
  if (i < 0) a[e] = b[f] + c[g] + d[h] + j + k + l; }"""


class Clock:
    """Prints microseconds per call: until the host goes on, and until the device has ended."""

    def __init__(self, cl):
        self.cl, self.queues, self.own = cl, [cl.queue], 0.0
        # A call that does next to nothing, for what Python itself takes.
        size = ctypes.byref(ctypes.c_size_t())
        self.own = self.times(lambda: cl.cl.clGetPlatformInfo(None, 0, ctypes.c_size_t(0), None, size), 2000)[0]
        print(f"a call from Python takes {self.own:.2f} us, which is taken off; us per turn: host, all")

    def finish(self):
        for queue in self.queues:
            self.cl.cl.clFinish(queue)

    def times(self, turn, count):
        found = []
        for _ in range(3):
            self.finish()
            begin = time.perf_counter()
            for _ in range(count):
                turn()
            host = time.perf_counter() - begin
            self.finish()
            found.append((host, time.perf_counter() - begin))
        return [1e6 * value / count for value in min(found)]

    def __call__(self, name, turn, calls=1, count=1000):
        host, everything = (max(value - calls * self.own, 0) for value in self.times(turn, count))
        print(f"{name:40} {host:9.2f} {everything:9.2f}", flush=True)


def host_of_launches(cl, clock, program, memory):
    call, number = cl.cl, ctypes.c_int(0)
    profiling = cl.new_queue(PROFILING)
    clock.queues.append(profiling)
    few = cl.kernel(program, "few", memory, number)
    many = cl.kernel(program, "many", *[memory] * 4, *[ctypes.c_ulong(0)] * 4, *[number] * 3, ctypes.c_float(0))
    extent, group, event = ctypes.byref(ctypes.c_size_t(256)), ctypes.byref(ctypes.c_size_t(64)), ctypes.c_void_p()
    status, four, eight = ctypes.c_int(), ctypes.c_size_t(4), ctypes.c_size_t(8)
    at, word, done = ctypes.byref(event), ctypes.create_string_buffer(4), ctypes.byref(status)

    def launch(kernel=few, queue=cl.queue, event=None):
        call.clEnqueueNDRangeKernel(queue, kernel, 1, None, extent, group, 0, None, event)

    def set_arguments():
        call.clSetKernelArg(few, 0, eight, ctypes.byref(memory))
        call.clSetKernelArg(few, 1, four, ctypes.byref(number))

    def poll():
        call.clFlush(cl.queue)
        while True:
            call.clGetEventInfo(event, STATUS, four, done, None)
            if status.value <= 0:
                break
        call.clReleaseEvent(event)

    def read(blocking, event=None):
        call.clEnqueueReadBuffer(cl.queue, memory, blocking, ctypes.c_size_t(0), four, word, 0, None, event)

    clock("launch", launch)
    clock("launch of 12 arguments", lambda: launch(many))
    clock("launch, 2 arguments set before", lambda: (set_arguments(), launch()), 3)
    clock("launch with an event", lambda: (launch(event=at), call.clReleaseEvent(event)), 2)
    clock("the same with profiling", lambda: (launch(queue=profiling, event=at), call.clReleaseEvent(event)), 2)
    clock("launch and flush", lambda: (launch(), call.clFlush(cl.queue)), 2)
    clock("launch and finish", lambda: (launch(), call.clFinish(cl.queue)), 2, 300)
    clock("launch and wait for its event", lambda: (launch(event=at), call.clWaitForEvents(1, at), call.clReleaseEvent(event)), 3, 300)
    clock("launch and ask for its status", lambda: (launch(event=at), poll()), 4, 300)
    clock("launch and blocking read of 4 bytes", lambda: (launch(), read(1)), 2, 300)
    clock("launch, read of 4 bytes, ask for status", lambda: (launch(), read(0, at), poll()), 5, 300)
    clock("fill of 4 bytes", lambda: call.clEnqueueFillBuffer(cl.queue, memory, word, four, ctypes.c_size_t(0), four, 0, None, None))
    for name, what in (("largest group of a kernel", KERNEL_GROUP), ("multiple of groups", KERNEL_MULTIPLE)):
        told = ctypes.c_size_t()
        call.clGetKernelWorkGroupInfo(few, cl.device, what, eight, ctypes.byref(told), None)
        print(f"{name:40} {told.value:9}")


def host_of_copies(cl, clock, memory, size):
    call, none, bytes_ = cl.cl, ctypes.c_size_t(0), ctypes.c_size_t(size)
    pinned = cl.buffer(size, ALLOC_HOST | READ_WRITE)
    mapped = cl.make("clEnqueueMapBuffer", cl.queue, pinned, 1, ctypes.c_ulong(MAP_BOTH), none, bytes_, 0, None, None)
    plain = ctypes.create_string_buffer(size)
    count, text = (100 if size < 1 << 20 else 10), f"{size >> 10} KiB"
    for name, host in (("plain", plain), ("pinned", mapped)):
        for what, function, blocking in (("write", "clEnqueueWriteBuffer", 1), ("write, not waited for", "clEnqueueWriteBuffer", 0),
                                         ("read", "clEnqueueReadBuffer", 1)):
            turn = getattr(call, function)
            clock(f"{what}, {name}, {text}", lambda: turn(cl.queue, memory, blocking, none, bytes_, host, 0, None, None), 1, count)
    call.clEnqueueUnmapMemObject(cl.queue, pinned, mapped, 0, None, None)
    clock.finish()
    call.clReleaseMemObject(pinned)


def host(library):
    cl = OpenCL(library)
    sizes = [4 << 10, 64 << 10, 1 << 20, 16 << 20]
    memory, clock = cl.buffer(max(sizes)), Clock(cl)
    program, said = cl.build(IDLE)
    if not program:
        raise SystemExit(f"host: does not build: {said}")
    host_of_launches(cl, clock, program, memory)
    for size in sizes:
        host_of_copies(cl, clock, memory, size)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("facts", "host"):
        raise SystemExit(__doc__)
    {"facts": facts, "host": host}[sys.argv[1]](*sys.argv[2:])
