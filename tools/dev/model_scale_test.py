#!/usr/bin/env python3
"""Checks model_scale.py without a build: closed cases of costs, buckets and steps."""

import math
import unittest

import model_scale
from model_scale import (CHANGES, FIRST_BUCKET, LINKS, MIB, NETWORKS, NEXT_BUCKET, PLANS, RANKS, TITLES, WAYS, Host, Link, Options, Step,
                         batches_needed, buckets_of, direct, efficiency, exchange, first_below, fitted, gpt, halving, options_of, resnet50,
                         resnet50_parameters, ring, step_time, tree)

FREE = Link(math.inf, 0.0, 0.0)
FAST_HOST = Host(math.inf, math.inf, math.inf)
PLAIN = Link(1e9, 1e-5, 1e-6)
# Two layers of 1 MiB and 3 MiB; the second one's gradient comes first.
SMALL = Step(1.0, 2.0, 0.5, (MIB // 4, 3 * MIB // 4), (1.0, 0.5))


RESNET50_BUCKETS = [1623296, 27022336, 29669376, 31502336, 12410784]


class Costs(unittest.TestCase):
    def test_ring_by_hand(self):
        # Six messages of a quarter of 4 MB, 1 ms each.
        self.assertAlmostEqual(ring(4, 4e6, PLAIN), 6 * (1e-5 + 1e-6 + 1e-3))

    def test_direct_by_hand(self):
        # Three blocks in four rounds; six messages of a block; a ring's bytes.
        self.assertAlmostEqual(direct(4, 12 * MIB, PLAIN), 4 * 1e-5 + 3 * 6 * 1e-6 + 1.5 * 12 * MIB / 1e9)

    def test_tree_and_halving_by_hand(self):
        self.assertAlmostEqual(tree(8, 1e6, PLAIN), 6 * (1e-5 + 1e-6 + 1e-3))
        self.assertAlmostEqual(halving(8, 1e6, PLAIN), 6 * (1e-5 + 1e-6) + 2 * 7 / 8 * 1e-3)
        self.assertEqual(tree(5, 1e6, PLAIN), tree(8, 1e6, PLAIN))

    def test_trees_are_for_small_messages_and_rings_for_large_ones(self):
        for link in LINKS.values():
            self.assertLess(tree(1024, 1024, link), ring(1024, 1024, link) / 10)
            self.assertLess(tree(1024, 1024, link), direct(1024, 1024, link))
            self.assertLess(ring(8, 100e6, link), tree(8, 100e6, link) / 2)
            self.assertLessEqual(halving(1024, 1e6, link), min(ring(1024, 1e6, link), tree(1024, 1e6, link)))

    def test_two_sizes_give_a_link_back(self):
        sizes = 64 << 10, 25 * MIB
        link = fitted(4, sizes, [direct(4, size, Link(5e8, 3e-5, 0.0)) for size in sizes])
        self.assertAlmostEqual(link.bandwidth / 5e8, 1)
        self.assertAlmostEqual(link.latency / 3e-5, 1)


class Buckets(unittest.TestCase):
    def test_limits(self):
        self.assertEqual(buckets_of([]), [])
        self.assertEqual(buckets_of([5]), [[0]])
        # The value that fills a bucket is its last one.
        self.assertEqual(buckets_of([FIRST_BUCKET - 1, 1, 1]), [[0, 1], [2]])
        self.assertEqual(buckets_of([FIRST_BUCKET - 1, NEXT_BUCKET, NEXT_BUCKET - 1, 1, 4]), [[0, 1], [2, 3], [4]])
        self.assertEqual(buckets_of([1, 2, 3], (1 << 40, 1 << 40)), [[0, 1, 2]])

    def test_resnet50(self):
        # The bytes that dist_ranks prints for these elements; --check compares them again.
        sizes = [4 * elements for elements, _ in resnet50_parameters()]
        self.assertEqual([sum(sizes[at] for at in bucket) for bucket in buckets_of(sizes)], RESNET50_BUCKETS)
        self.assertEqual(sum(sizes), 4 * 25557032)
        self.assertEqual(len(sizes), 161)

    def test_gpt(self):
        self.assertEqual(sum(gpt("h100").elements), 124439808)


class Steps(unittest.TestCase):
    def test_one_rank_is_the_whole(self):
        for network, (make, _) in NETWORKS.items():
            for changes in CHANGES.values():
                self.assertEqual(efficiency(make("h100"), 1, LINKS["10"], options_of(network, **changes)), 1.0)

    def test_nothing_is_lost_where_messages_are_free(self):
        for way in WAYS:
            for overlap in False, True:
                self.assertAlmostEqual(efficiency(resnet50("rtx3090"), 1024, FREE, Options(way=way, overlap=overlap), FAST_HOST), 1.0)

    def test_buckets_go_through_read_sum_and_write(self):
        host = Host(1e6, math.inf, math.inf)
        link = Link(1e6, 0.0, 0.0)
        # Two ranks send as many bytes as a bucket has. Read at 1 and 4 s, summed at 2 and 7, written at 5 (behind the reads) and 10.
        self.assertAlmostEqual(exchange([1e6, 3e6], [0.0, 0.0], 2, link, Options(way="ring"), host), 10.0)
        # The second bucket is ready late.
        self.assertAlmostEqual(exchange([1e6, 3e6], [0.0, 5.0], 2, link, Options(way="ring"), host), 14.0)

    def test_overlap_by_hand(self):
        link = Link(4 * MIB, 0.0, 0.0)
        options = dict(way="ring")
        # Now: 3 s of computing, 4 MiB on the link, the update.
        self.assertAlmostEqual(step_time(SMALL, 2, link, Options(**options), FAST_HOST), 3.0 + 1.0 + 0.5)
        # The last layer's 3 MiB are summed from 2 to 2.75 s, the first one's 1 MiB from 3 to 3.25.
        self.assertAlmostEqual(step_time(SMALL, 2, link, Options(overlap=True, **options), FAST_HOST), 3.25 + 0.5)
        # In one bucket they wait for the first layer.
        one = Options(overlap=True, buckets=(1 << 40, 1 << 40), **options)
        self.assertAlmostEqual(step_time(SMALL, 2, link, one, FAST_HOST), 4.0 + 0.5)

    def test_other_changes_by_hand(self):
        link = Link(4 * MIB, 0.0, 0.0)
        self.assertAlmostEqual(step_time(SMALL, 2, link, Options(way="ring", wide=2), FAST_HOST), 3.0 + 0.5 + 0.5)
        self.assertAlmostEqual(step_time(SMALL, 2, link, Options(way="ring", sharded=True), FAST_HOST), 3.0 + 1.0 + 0.25)
        self.assertAlmostEqual(step_time(SMALL, 2, link, Options(way="ring", batches=3), FAST_HOST), 9.0 + 1.0 + 0.5)
        # 3.5 s of 4.5 are not enough. Nine batches take 27.5 s and a second, and are.
        self.assertLess(efficiency(SMALL, 2, link, Options(way="ring", batches=2), FAST_HOST), 0.9)
        slow_adds = Host(math.inf, 4 * MIB, math.inf)
        self.assertAlmostEqual(step_time(SMALL, 2, link, Options(way="ring"), slow_adds), 3.0 + 2.0 + 0.5)

    def test_first_ranks_and_batches(self):
        step = resnet50("rtx3090")
        for link in LINKS.values():
            first = first_below(step, link, Options(batches=20))
            self.assertTrue(all(efficiency(step, ranks, link, Options(batches=20)) >= 0.9 for ranks in RANKS if ranks < (first or 2048)))
            batches = batches_needed(step, 64, link, Options())
            self.assertLess(efficiency(step, 64, link, Options(batches=batches - 1)), 0.9)
            self.assertGreaterEqual(efficiency(step, 64, link, Options(batches=batches)), 0.9)
        self.assertIsNone(first_below(step, Link(1e15, 0.0, 0.0), Options(batches=100)))

    def test_gradients_come_from_the_last_layer_to_the_first(self):
        for device in TITLES:
            self.assertEqual(list(resnet50(device).ready), sorted(resnet50(device).ready, reverse=True))
            # The embedding is the last layer's matrix, too.
            ready = gpt(device).ready
            self.assertEqual(ready[:2], (1.0, 1.0))
            self.assertEqual(list(ready[:-2]), sorted(ready[:-2], reverse=True))
            self.assertLess(ready[-1], ready[-3])
        # The last of layer4's ten convolutions, the first in backward order, is a tenth of its way.
        at = max(at for at, (_, before) in enumerate(resnet50_parameters()) if before == 52)
        self.assertAlmostEqual(resnet50("h100").ready[at], PLANS["f32", "h100"][3][0] / 10)

    def test_a_gpt_takes_its_arithmetic_at_least(self):
        for device in TITLES:
            step = gpt(device)
            flops = 6 * sum(step.elements) * 8 * 1024
            self.assertGreater(step.forward + step.backward, flops / model_scale.DEVICES[device].peak)
            self.assertLess(step.forward + step.backward, 2.5 * flops / model_scale.DEVICES[device].peak)


if __name__ == "__main__":
    unittest.main()
