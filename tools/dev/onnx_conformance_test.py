#!/usr/bin/env python3
"""Checks that onnx_conformance.py reads its list, and sees what differs from it."""

import unittest

from onnx_conformance import LIST, ramp, read_list, surprises

TEXT = """
# A comment.
release 1.0 node=3 simple=1
release 2.0 node=1
reason texts
test_string_* test_regex_*
reason [2.0] wrong in this release
test_odd
either [1.0] roundings
test_close
"""


class Conformance(unittest.TestCase):
    def setUp(self):
        self.releases, self.rules = read_list(TEXT)

    def test_list(self):
        self.assertEqual(self.releases, {"1.0": {"node": 3, "simple": 1}, "2.0": {"node": 1}})
        self.assertEqual(self.rules[0], (None, "test_string_*", "texts", True))
        self.assertEqual(self.rules[2], (("2.0",), "test_odd", "wrong in this release", True))

    def test_surprises_of_both_kinds(self):
        results = {"node": {"test_close": "pass", "test_odd": "FAIL x", "test_string_b": "pass"}, "simple": {}}
        found = surprises("1.0", self.releases["1.0"], results, self.rules)
        self.assertEqual(found, ["1.0 node test_odd: FAIL x", "1.0 node test_string_b: passes, though it must not: texts",
                                 "1.0 simple: 0 cases instead of 1"])

    def test_nothing_to_tell(self):
        self.assertEqual(surprises("2.0", {"node": 1}, {"node": {"test_odd": "FAIL x"}}, self.rules), [])

    def test_a_rule_without_a_case(self):
        self.assertEqual(surprises("2.0", {"node": 1}, {"node": {"test_a": "pass"}}, self.rules), ["2.0: no case is test_odd"])

    def test_the_tree_has_a_list(self):
        releases, rules = read_list(LIST.read_text())
        self.assertEqual(list(releases), ["1.12.0", "1.17.0", "1.22.0"])
        self.assertTrue(rules)

    def test_a_ramp(self):
        self.assertEqual(ramp([1, 2]), b"\x08\x01\x08\x02\x10\x01\x4a\x08\0\0\0\0\0\0\0\x3f")


if __name__ == "__main__":
    unittest.main()
