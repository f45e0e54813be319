"""One rank of PyTorch's DistributedDataParallel over gloo: trains an item and prints what a step took. The launcher sets RANK and so on."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from peers.items import parse
from peers.pytorch_runs import LAYOUTS
from peers.work import work_of


def goes_on(wanted):
    """Rank 0's answer on all ranks, so that they make as many steps."""
    answer = torch.tensor([int(wanted)])
    dist.broadcast(answer, 0)
    return bool(answer.item())


def measured(run, seconds):
    for _ in range(3):
        run()
    samples, begin = [], time.perf_counter()
    while goes_on(len(samples) < 5 or time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def main(name, seconds):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    work = work_of(parse(name), "pytorch")
    # The faster of its layouts counts, as of one process.
    best = min(measured(work.prepare(DistributedDataParallel, layout), seconds) for layout in (LAYOUTS if work.layouts else LAYOUTS[:1]))
    if dist.get_rank() == 0:
        print("step", best, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    main(sys.argv[1], float(sys.argv[2]))
