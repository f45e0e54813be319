#!/usr/bin/env python3
"""Checks that environment_page.py reads the table of variables, and sees those that are in none."""

import unittest

from environment_page import OTHERS, TESTS, page, problems, read_by, rows

TABLE = '''// Before it
constexpr std::array variables{
    // Devices
    Variable{"CLNET_A", "gpu | cpu", "the \\"best\\""},
    Variable{
        "CLNET_B", "0 | 1",
        "0: one; "
        "1: two",
        check_flag},
    // Data
    Variable{"CLNET_C", "a folder", "where, if at all"},
};
'''


class Page(unittest.TestCase):
    def test_rows(self):
        self.assertEqual(list(rows(TABLE)), [("Devices", "CLNET_A", "gpu | cpu", 'the "best"'), ("Devices", "CLNET_B", "0 | 1", "0: one; 1: two"),
                                             ("Data", "CLNET_C", "a folder", "where, if at all")])
        with self.assertRaises(SystemExit):
            list(rows(TABLE.replace("    // Devices\n", "")))
        with self.assertRaises(SystemExit):
            list(rows("nothing"))

    def test_page(self):
        text = page(rows(TABLE))
        self.assertIn('\n## Devices\n\n| variable | values | meaning |\n|---|---|---|\n| `CLNET_A` | gpu \\| cpu | The "best" |\n', text)
        self.assertLess(text.index("## Devices"), text.index("## Data"))
        self.assertIn(f"| `{next(iter(TESTS))}` |", text)

    def test_readers(self):
        self.assertEqual(read_by("lib/a.cpp", 'env::flag("CLNET_A", true); std::getenv("HOME"); text("CLNET_NOT")'), {"CLNET_A", "HOME"})
        self.assertEqual(read_by("tools/a.sh", "${CLNET_A:-x} $CLNET_B $OTHER"), {"CLNET_A", "CLNET_B"})
        self.assertEqual(read_by(".ci/run", "${NIGHTLY_A:-x}"), {"NIGHTLY_A"})
        self.assertEqual(read_by("tools/a.py", 'os.environ.get("CLNET_A") os.environ["CLNET_B"]'), {"CLNET_A", "CLNET_B"})
        self.assertEqual(read_by("tests/a.cmake", '"$ENV{CLNET_A}"'), {"CLNET_A"})

    def test_problems(self):
        known = dict.fromkeys([*OTHERS, *TESTS], "a.cpp")
        self.assertEqual(list(problems({"CLNET_A"}, {**known, "CLNET_A": "b.cpp"})), [])
        self.assertIn("b.cpp: reads CLNET_B", next(problems(set(), {**known, "CLNET_B": "b.cpp"})))
        self.assertIn("CLNET_A: stands in a table, and nothing reads it", next(problems({"CLNET_A"}, known)))


if __name__ == "__main__":
    unittest.main()
