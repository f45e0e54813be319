#!/usr/bin/env python3
"""Checks that check_floors.py sees what it is there to see."""

import unittest

from check_floors import problems


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

    def test_opencl(self):
        self.expect("include/clnet/opencl.h", "#include <CL/cl.h>\n")
        self.expect("include/clnet/device.h", "#include <CL/cl.h>\n", "the only public header")
        self.expect("lib/graph/node.h", "#include <CL/opencl.hpp>\n", "graph knows no OpenCL")

    def test_public_headers_are_self_contained(self):
        self.expect("include/clnet/device.h", '#include "lib/cl/context.h"\n', "includes an internal one")

    def test_relative_includes(self):
        self.expect("lib/cl/context.cpp", '#include "context.h"\n', "say clnet/")

    def test_unknown_places(self):
        self.expect("lib/kitchen/sink.cpp", "", "is in no floor")
        self.expect("include/clnet/sink.h", "", "is in no floor")


if __name__ == "__main__":
    unittest.main()
