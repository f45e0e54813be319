#!/usr/bin/env python3
"""Tests of build_time.py."""

import unittest

import build_time


class BuildTime(unittest.TestCase):
    def test_times_of_one_output_are_added(self):
        times = build_time.read_times("1.5 0.25 a.o\n0.5 0.25 b.o\n1.0 0.0 a.o\n")
        self.assertEqual(times, {"a.o": 2.75, "b.o": 0.75})

    def test_names_are_short(self):
        self.assertEqual(build_time.short("CMakeFiles/clnet_objects.dir/Unity/unity_lib_nn_0_cxx.cxx.o"), "clnet_objects/lib_nn_0")
        self.assertEqual(build_time.short("CMakeFiles/clnet_objects.dir/lib/base/version.cpp.o"), "clnet_objects/lib/base/version")


if __name__ == "__main__":
    unittest.main()
