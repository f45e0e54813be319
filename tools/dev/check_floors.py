#!/usr/bin/env python3
"""Checks that no file includes one from a floor above its own, that POSIX stays in lib/base/os, MPI in lib/dist/mpi, and PoCL behind its door
(docs/developer/overview.md).

check_floors.py [ROOT]: reads include/, lib/, tools/ and tests/ under ROOT (default: this repository), prints a line for every
include, call and name that breaks a rule and ends with 1 if there was one.
"""

import pathlib
import re
import sys

# The floors from the bottom. Folders that share a number may include each other, except base's two neighbours below.
FLOORS = {
    "base": 0,
    "cl": 1, "pocl": 1,
    "graph": 2,
    "exec": 3,
    "ops": 4,
    "autograd": 5, "dist": 5,
    "nn": 6, "optim": 6, "data": 6, "train": 6, "io": 6, "metrics": 6, "onnx": 6, "parallel": 6,
    "tools": 7, "tests": 7, "examples": 7,
}
# The folders of lib/exec in the order of an evaluation: each includes only what lies before it. Files outside of the folders
# (evaluate, compile, ...) come last.
EXEC = ("options", "collect", "launch", "choose", "fuse", "lower", "place", "batch", "tune", "plan")
# The device's floor and the graph's don't know each other: only exec joins them.
STRANGERS = {("graph", "cl"), ("cl", "graph")}
# Floors that know no OpenCL.
NO_OPENCL = {"base", "graph"}
# The floor that each public header speaks for.
HEADERS = {
    "error.h": "base", "export.h": "base", "version.h": "base",
    "device.h": "cl",
    "autocast.h": "graph", "debug.h": "graph", "dtype.h": "graph", "shape.h": "graph", "tensor.h": "graph",
    "tensor_methods.inc": "graph",
    "opencl.h": "exec",
    "autograd.h": "autograd",
    "compile.h": "exec",
    "kernel.h": "ops", "ops.h": "ops",
    "checkpoint.h": "io", "data.h": "data", "decode.h": "nn", "dist.h": "dist", "hooks.h": "train", "io.h": "io",
    "metrics.h": "metrics", "onnx.h": "onnx", "parallel.h": "parallel",
    "models.h": "nn", "nn.h": "nn", "optim.h": "optim", "train.h": "train",
    "clnet.h": "tools",
}
# The only public header that includes OpenCL's.
OPENCL_HEADER = "include/clnet/opencl.h"

# The only folder of the library that knows POSIX: a port to another system begins and ends there.
SYSTEM = "lib/base/os/"
# Programs may know it, but no more files of tools/ than these. Fewer are better: then this number goes down, too.
POSIX_TOOLS = 7
POSIX_HEADER = re.compile(
    r"^(?:(?:arpa|asm|bits|gnu|linux|net|netinet|sys)/.*"
    r"|(?:aio|alloca|dirent|dlfcn|elf|execinfo|fcntl|fnmatch|ftw|getopt|glob|grp|iconv|ifaddrs|langinfo|libgen|link|malloc|mqueue"
    r"|netdb|poll|pthread|pty|pwd|regex|sched|search|semaphore|signal|spawn|strings|syslog|termios|ucontext|ulimit|unistd|utime"
    r"|wordexp)\.h)$")
# Also reached through headers of the standard library: <csignal> and <cstdlib> declare some, <mutex> includes <pthread.h>. Common
# words count as POSIX's only behind a bare `::`, as clnet has functions of such names.
POSIX_WORDS = (
    "access|alarm|chdir|chmod|close|creat|dup|dup2|exec[lv]p?e?|_exit|fork|fstat|kill|link|lseek|lstat|mkdir|nice|open|openat|pause"
    "|pipe|poll|pread|pwrite|read|readlink|select|sleep|stat|symlink|sync|truncate|umask|unlink|wait|write")
POSIX_NAMES = (
    "dladdr|dlclose|dlopen|dlsym|fchmod|fcntl|fdatasync|fileno|flock|fsync|ftruncate|getgid|getpgrp|getpid|getppid|getrlimit"
    "|getrusage|gettid|getuid|gmtime_r|ioctl|isatty|localtime_r|madvise|memfd_create|mkdtemp|mkfifo|mkstemp|mlock|mmap|mprotect"
    "|munmap|nanosleep|pclose|pipe2|popen|posix_\\w+|prctl|pthread_\\w+|putenv|sched_\\w+|setenv|setpgid|setpriority|setrlimit|setsid"
    "|sigaction|sigaddset|sigemptyset|sigfillset|sigprocmask|strsignal|sysconf|tcgetattr|tcsetattr|uname|unsetenv|usleep|vfork"
    "|waitid|waitpid")
POSIX_CALL = re.compile(rf"(?<![\w>:])(::(?:{POSIX_WORDS})|(?<!\.)(?:::)?(?:{POSIX_NAMES}))\s*\(")
COMMENT = re.compile(r"//[^\n]*")

# The folder that knows one driver, and the only file of the library outside of it that may name that or include the folder's files.
DRIVER = "lib/pocl/"
DOORKEEPER = "lib/cl/quirks.cpp"
DRIVER_NAME = re.compile("pocl", re.IGNORECASE)

# What this thread does that no argument says: all of the library's thread-locals, with what each is for.
THREAD_LOCALS = {
    "lib/exec/options/options.cpp": "options of evaluations, and DetectAnomaly",
    "lib/graph/node.cpp": "nodes that are being freed",
    "lib/graph/autocast.cpp": "Autocast",
    "lib/graph/scope.cpp": "NamedScope",
    "lib/graph/capture.cpp": "the function that compile() runs",
    "lib/graph/composition.cpp": "the export that listens to composed functions",
    "lib/graph/random_stream.cpp": "the random numbers of a replica",
    "lib/graph/slot_scope.cpp": "the slots of a replica in place of its model's",
    "lib/nn/here.cpp": "calls of modules; clones, summaries and features that are being made",
    "lib/nn/shared_statistics.cpp": "who adds the statistics of batch norm",
    "lib/parallel/meeting.cpp": "the meeting that a lane's part of a step takes part in",
    "lib/cl/compile_watch.cpp": "who is told of compiling",
    "lib/cl/other_builders.cpp": "who is told while another process builds a program",
    "lib/cl/device.cpp": "DeviceScope",
    "lib/cl/lane_device.cpp": "the device of a lane's thread",
}
THREAD_LOCAL = re.compile(r"\bthread_local\b")
# How often the library asks whether a pointer is the last: a speculative output and a prepack that would free memory. Who may overwrite is counted elsewhere (lib/exec/collect/sole_owner.h). Fewer are better: then this number goes down.
USE_COUNTS = 3

# The only folder that knows an MPI: its file is compiled into modules, never into the library.
MPI = "lib/dist/mpi/"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SYSTEM_OPENCL = re.compile(r"^(CL/|OpenCL/|clblast)")


def floor_of(path):
    """The floor of a file by its path from the root, or None for one that is in no floor."""
    parts = path.split("/")
    if parts[:2] == ["include", "clnet"] and len(parts) == 3:
        return HEADERS.get(parts[2])
    if parts[:2] == ["include", "clnet"] and len(parts) == 4 and parts[2] in ("data", "nn", "ops", "optim"):
        return parts[2]
    if parts[:2] == ["lib", "exec"] and len(parts) > 3 and parts[2] not in EXEC:
        return None
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1] if parts[1] in FLOORS else None
    return parts[0] if parts[0] in ("tools", "tests", "examples") else None


def step_of(path):
    """Where in EXEC a file of lib/exec is; None for a file elsewhere."""
    parts = path.split("/")
    if parts[:2] != ["lib", "exec"]:
        return None
    return EXEC.index(parts[2]) if len(parts) > 3 else len(EXEC)


def exec_problem(path, target):
    """Why a file of lib/exec may not include another; None: it may."""
    mine, other = step_of(path), step_of(target)
    if mine is None or other is None or other <= mine:
        return None
    folder = EXEC[other] if other < len(EXEC) else "lib/exec's own files"
    return f"in lib/exec, {EXEC[mine]} comes before {folder}"


def target_of(quote, name):
    """The path from the root of a project file that an include names, or None for a file of somebody else's."""
    if name.startswith("clnet/"):
        return "include/" + name
    return name if quote == '"' else None


def posix_headers(text):
    """The includes of POSIX headers, as matches."""
    return [match for match in INCLUDE.finditer(text) if match[1] == "<" and POSIX_HEADER.match(match[2])]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def posix_problems(path, text):
    """What a file of the library knows of POSIX that only SYSTEM should."""
    if not path.startswith(("lib/", "include/")) or path.startswith(SYSTEM):
        return
    for match in posix_headers(text):
        yield f"{path}:{line_of(text, match.start(1))}: <{match[2]}>: only {SYSTEM} includes POSIX headers"
    code = COMMENT.sub("", text)
    for match in POSIX_CALL.finditer(code):
        yield f"{path}:{line_of(code, match.start(1))}: {match[1]}(): only {SYSTEM} calls POSIX functions"


def driver_problems(path, text):
    """Where a file of the library names the driver, in code or comments, that only DRIVER and DOORKEEPER should know."""
    if not path.startswith(("lib/", "include/")) or path.startswith(DRIVER) or path == DOORKEEPER:
        return
    for match in DRIVER_NAME.finditer(text):
        yield f"{path}:{line_of(text, match.start())}: {match[0]}: only {DRIVER} and {DOORKEEPER} name it"


def tools_problems(files):
    """Whether as many files of tools/ as POSIX_TOOLS includes POSIX headers, by paths and texts of all files."""
    found = [path for path, text in files if path.startswith("tools/") and posix_headers(text)]
    if len(found) > POSIX_TOOLS:
        yield f"tools: {len(found)} files include POSIX headers, not {POSIX_TOOLS}: {', '.join(found)}; {SYSTEM} may have what they need"
    elif len(found) < POSIX_TOOLS:
        yield f"tools: {len(found)} files include POSIX headers: POSIX_TOOLS in tools/dev/check_floors.py can be lowered to that"


def state_problems(files):
    """Whether the library's thread-locals are those of THREAD_LOCALS, and use_count() is asked as often as USE_COUNTS says."""
    asked = 0
    for path, text in files:
        if not path.startswith("lib/"):
            continue
        code = COMMENT.sub("", text)
        here = len(THREAD_LOCAL.findall(code))
        if here != (path in THREAD_LOCALS):
            yield f"{path}: has {here} thread_local; THREAD_LOCALS in tools/dev/check_floors.py says {int(path in THREAD_LOCALS)}"
        asked += code.count("use_count()")
    if asked != USE_COUNTS:
        yield f"lib: asks use_count() {asked} times; USE_COUNTS in tools/dev/check_floors.py says {USE_COUNTS}"


def problems(path, text):
    """What is wrong with the includes and the calls of one file."""
    floor = floor_of(path)
    if floor is None:
        yield f"{path}: is in no floor that tools/dev/check_floors.py knows"
        return
    yield from posix_problems(path, text)
    yield from driver_problems(path, text)
    for match in INCLUDE.finditer(text):
        quote, name = match.groups()
        where = f"{path}:{line_of(text, match.start(1))}"
        if name == "mpi.h" and not path.startswith(MPI):
            yield f"{where}: <mpi.h>: only {MPI} includes it"
        if quote == "<" and SYSTEM_OPENCL.match(name):
            if path.startswith("include/") and path != OPENCL_HEADER:
                yield f"{where}: <{name}>: {OPENCL_HEADER} is the only public header that includes OpenCL's"
            elif floor in NO_OPENCL:
                yield f"{where}: <{name}>: {floor} knows no OpenCL"
            continue
        target = target_of(quote, name)
        if target is None:
            continue
        if path.startswith("include/") and not target.startswith("include/"):
            yield f'{where}: "{name}": a public header includes an internal one'
            continue
        other = floor_of(target)
        if other is None:
            yield f'{where}: "{name}": say clnet/<header>.h or lib/<floor>/<header>.h'
        elif FLOORS[other] > FLOORS[floor]:
            yield f'{where}: "{name}": {floor} (floor {FLOORS[floor]}) includes {other} (floor {FLOORS[other]})'
        elif (floor, other) in STRANGERS:
            yield f'{where}: "{name}": {floor} and {other} do not know each other'
        elif wrong := exec_problem(path, target):
            yield f'{where}: "{name}": {wrong}'


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    paths = [f for top in ("include", "lib", "tools", "tests") for f in sorted((root / top).rglob("*")) if f.suffix in (".h", ".cpp")]
    if not paths:
        sys.exit(f"{root}: no C++ files")
    files = [(f.relative_to(root).as_posix(), f.read_text(encoding="utf-8")) for f in paths]
    wrong = [p for path, text in files for p in problems(path, text)] + list(tools_problems(files)) + list(state_problems(files))
    for line in wrong:
        print(line)
    print(f"floors: {len(files)} files, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
