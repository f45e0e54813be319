#!/usr/bin/env python3
"""Checks that check_floors.py sees what it is there to see."""

import unittest

from check_floors import POSIX_TOOLS, THREAD_LOCALS, USE_COUNTS, problems, state_problems, tools_problems


class Floors(unittest.TestCase):
    def expect(self, path, text, *wanted):
        found = list(problems(path, text))
        self.assertEqual(len(found), len(wanted), found)
        for line, part in zip(found, wanted):
            self.assertIn(part, line)

    def test_own_floor_and_below_are_fine(self):
        self.expect("lib/exec/run.cpp", '#include "lib/exec/run.h"\n#include "lib/cl/context.h"\n#include "clnet/tensor.h"\n#include <vector>\n')

    def test_a_floor_above(self):
        self.expect("lib/base/log.cpp", '\n#include "lib/cl/context.h"\n', "lib/base/log.cpp:2: \"lib/cl/context.h\": base (floor 0) includes cl")
        self.expect("lib/graph/node.cpp", '#include "clnet/nn.h"\n', "graph (floor 2) includes nn")
        self.expect("include/clnet/ops.h", '#include <clnet/train.h>\n', "ops (floor 4) includes train")

    def test_graph_and_device_are_strangers(self):
        self.expect("lib/graph/node.cpp", '#include "clnet/device.h"\n', "do not know each other")
        self.expect("lib/cl/context.cpp", '  #  include "lib/graph/node.h"\n', "includes graph")

    def test_the_way_through_exec(self):
        self.expect("lib/exec/place/placement.cpp", '#include "lib/exec/place/arena.h"\n#include "lib/exec/launch/recorder.h"\n')
        self.expect("lib/exec/evaluate.cpp", '#include "lib/exec/plan/cache.h"\n#include "lib/exec/statistics.h"\n')
        self.expect("lib/exec/place/prepack_cache.cpp", '\n#include "lib/exec/plan/cache.h"\n',
                    'lib/exec/place/prepack_cache.cpp:2: "lib/exec/plan/cache.h": in lib/exec, place comes before plan')
        self.expect("lib/exec/plan/plan.cpp", '#include "lib/exec/evaluate.h"\n', "plan comes before lib/exec's own files")
        self.expect("lib/ops/matmul/matmul.cpp", '#include "lib/exec/choose/solver.h"\n')
        self.expect("lib/exec/generate/chain.cpp", "", "is in no floor")

    def test_opencl(self):
        self.expect("include/clnet/opencl.h", "#include <CL/cl.h>\n")
        self.expect("include/clnet/device.h", "#include <CL/cl.h>\n", "the only public header")
        self.expect("lib/graph/node.h", "#include <CL/opencl.hpp>\n", "graph knows no OpenCL")

    def test_mpi(self):
        self.expect("lib/dist/mpi/module.cpp", "#include <mpi.h>\n")
        self.expect("lib/dist/engine.cpp", "#include <mpi.h>\n", "lib/dist/engine.cpp:1: <mpi.h>: only lib/dist/mpi/ includes it")
        self.expect("tests/dist/ranks.cpp", '#include "mpi.h"\n', "only lib/dist/mpi/ includes it", "say clnet/<header>.h")
        self.expect("lib/dist/group.cpp", '#include "clnet/optim.h"\n', "dist (floor 5) includes optim")

    def test_posix_headers(self):
        self.expect("lib/base/os/terminal.cpp", "#include <sys/ioctl.h>\n#include <unistd.h>\n")
        self.expect("lib/train/progress.cpp", "#include <sys/ioctl.h>\n#include <string>\n#include <unistd.h>\n",
                    "lib/train/progress.cpp:1: <sys/ioctl.h>", "lib/train/progress.cpp:3: <unistd.h>")
        self.expect("include/clnet/device.h", "#include <dlfcn.h>\n", "only lib/base/os/ includes POSIX headers")
        self.expect("lib/base/file.cpp", "#include <cerrno>\n#include <csignal>\n#include <filesystem>\n")
        self.expect("tools/report.cpp", "#include <unistd.h>\n")

    def test_posix_calls(self):
        self.expect("lib/base/os/process.cpp", "const int me = ::getpid();\n")
        self.expect("lib/cl/trace.cpp", "// as ::read()\nreturn ::getpid();\n", "lib/cl/trace.cpp:2: ::getpid()")
        for call in ("::open(path)", "(void)::write (1, data, 1)", "if (::close(file))", "!::access(path)", "x = ::execv(a, b)",
                     "while (::poll(&waiting, 1, 0))", "sigaction(signal, &action, nullptr)", "  setenv(name, value, 1)",
                     "static int once = pthread_atfork(a, b, c)", "posix_spawn(&process)"):
            self.expect("lib/train/fit.cpp", call + ";\n", "only lib/base/os/ calls POSIX functions")

    def test_no_posix_calls(self):
        for text in ("file::read(path, limit)", "os::open(path, how)", "TraceFile::open(path)", "queue_.read(buffer)", "input->read(x)",
                     "read(1)", "std::raise(signal)", "Pool<float>::close(x)", "cache.fsync(x)", "clWaitForEvents(1, &event)",
                     "os::is_terminal(os::Stream::error)", "::crc32_z(sum, data, bytes)", "unnamed_fork(x)", "// waitpid() tells"):
            self.expect("lib/train/fit.cpp", text + ";\n")

    def test_state_that_no_argument_says(self):
        known = [(path, "thread_local int x;\n") for path in THREAD_LOCALS]
        asked = [("lib/exec/plan/speculative_outputs.cpp", "// no thread_local\n" + "x.use_count();\n" * USE_COUNTS)]
        self.assertEqual(list(state_problems(known + asked)), [])
        self.assertIn("lib/nn/linear.cpp: has 1", next(state_problems([("lib/nn/linear.cpp", "static thread_local int x;")] + known + asked)))
        self.assertIn("has 0 thread_local", next(state_problems([(known[0][0], "int x;")] + known[1:] + asked)))
        self.assertIn("asks use_count()", next(state_problems(known)))

    def test_one_driver_has_one_door(self):
        door = '#include "lib/pocl/door.h"\n'
        for path in ("lib/cl/quirks.cpp", "lib/pocl/submission.cpp", "tools/caches.cpp", "tests/ops/spinning_thread.cpp"):
            self.expect(path, door + "// PoCL's habits\n")
        self.expect("lib/cl/context.cpp", door, "lib/cl/context.cpp:1: pocl: only lib/pocl/ and lib/cl/quirks.cpp name it")
        self.expect("lib/exec/plan/plan.cpp", '\n// as PoCL does\nhas_quirk(info, "pocl-x");\n', "plan.cpp:2: PoCL", "plan.cpp:3: pocl")
        self.expect("lib/pocl/door.h", '#include "lib/cl/prebuild.h"\n#include "lib/base/env.h"\n#include "clnet/device.h"\n')
        self.expect("lib/pocl/door.h", '#include "lib/exec/plan/plan.h"\n', "pocl (floor 1) includes exec (floor 3)")
        self.expect("lib/pocl/door.h", '#include "clnet/tensor.h"\n', "pocl (floor 1) includes graph (floor 2)")

    def test_tools_that_know_posix(self):
        knows = [(f"tools/{i}.cpp", "#include <poll.h>\n") for i in range(POSIX_TOOLS)]
        others = [("tools/plot.cpp", "#include <string>\n"), ("tests/unit/file.cpp", "#include <unistd.h>\n")]
        self.assertEqual(list(tools_problems(knows + others)), [])
        self.assertIn("tools/new.cpp", next(tools_problems(knows + [("tools/new.cpp", "#include <fcntl.h>\n")])))
        self.assertIn("can be lowered", next(tools_problems(knows[1:])))

    def test_public_headers_are_self_contained(self):
        self.expect("include/clnet/device.h", '#include "lib/cl/context.h"\n', "includes an internal one")

    def test_relative_includes(self):
        self.expect("lib/cl/context.cpp", '#include "context.h"\n', "say clnet/")

    def test_unknown_places(self):
        self.expect("lib/kitchen/sink.cpp", "", "is in no floor")
        self.expect("include/clnet/sink.h", "", "is in no floor")


if __name__ == "__main__":
    unittest.main()
