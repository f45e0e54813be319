#!/usr/bin/env python3
"""Tests of compare_ranks.py, with a script in place of clnet-bench."""
import os
import pathlib
import tempfile
import unittest

import compare_ranks

# Two processes of a launcher, which take 10 and 14 ms, and one without.
PROGRAM = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --json) json=$2 ;; --replicas) replicas=$2 ;; fail) echo first >&2; echo "no such item" >&2; exit 2 ;; esac
  shift
done
[ "$POCL_MAX_PTHREAD_COUNT" = 1 ] && [ -z "${OPENBLAS_CORETYPE-}" ] || exit 3
case ${replicas-}${OMPI_COMM_WORLD_RANK-} in
  0:0,0:1) [ "$POCL_DEVICES" = "pthread basic" ] && echo '{"items": [{"alone": 10, "together": 19}]}' ;;
  1) echo '{"items": [{"median_ms": 14}]}' ;;
  *) echo '{"items": [{"median_ms": 10}]}' ;;
esac >"$json"
"""
LAUNCHER = """#!/bin/sh
[ "$1" = -n ] || exit 9
count=$2 rank=0
shift 2
while [ $rank -lt $count ]; do OMPI_COMM_WORLD_RANK=$rank "$@" || exit; rank=$((rank + 1)); done
"""


class Ranks(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        for name, text in ("tools/clnet-bench", PROGRAM), ("launcher", LAUNCHER):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        launcher, compare_ranks.LAUNCHER = compare_ranks.LAUNCHER, [str(folder / "launcher")]
        self.addCleanup(setattr, compare_ranks, "LAUNCHER", launcher)
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
        self.addCleanup(os.environ.pop, "OPENBLAS_CORETYPE")
        self.bench = compare_ranks.Bench(folder, 2, 0.1, folder)

    def test_processes_count_by_their_mean(self):
        self.assertEqual(self.bench.step("cnn-train-b64", 2), 12)
        self.assertEqual(self.bench.step("cnn-train-b64", 1), 10)
        self.assertEqual(self.bench.step("cnn-train-b64", 0), 10)

    def test_devices_count_by_their_rates(self):
        times = self.bench.replicas("cnn-train-b64")
        self.assertAlmostEqual(times["device"] / times["devices"], 1.9)

    def test_a_failure_is_one_line(self):
        with self.assertRaisesRegex(compare_ranks.Failed, r"ended with 2: no such item$"):
            self.bench.step("fail", 0)

    def test_a_spread_has_quartiles(self):
        self.assertEqual(compare_ranks.spread([1.0]), "1.00")
        self.assertEqual(compare_ranks.spread([1.0, 2.0, 3.0]), "2.00 (1.00 to 3.00)")


if __name__ == "__main__":
    unittest.main()
