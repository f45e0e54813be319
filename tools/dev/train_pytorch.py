#!/usr/bin/env python3
"""Trains clnet-train's network `cnn` on Fashion-MNIST in PyTorch, to compare accuracy and speed.

  tools/dev/train_pytorch.py [--seed 1] [--schedule one-cycle|constant] [--epochs 5] [--data FOLDER] [--threads N]

Needs torch and NumPy for the Python that runs it (Debian: python3-torch, /usr/bin/python3), and runs itself again with PyTorch's best
settings for a CPU, as compare_peers.py does. A line per epoch: test accuracy, images per second of training, seconds.
"""
import argparse
import gzip
import os
import sys
import time

from peers.processes import best_environment


def read(folder, name):
    import numpy
    with gzip.open(os.path.join(folder, name + ".gz")) as file:
        data = file.read()
    if name.endswith("idx1-ubyte"):
        return numpy.frombuffer(data, numpy.uint8, offset=8).astype(numpy.int64)
    return numpy.frombuffer(data, numpy.uint8, offset=16).reshape(-1, 1, 28, 28).astype(numpy.float32) / 255


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedule", choices=["one-cycle", "constant"], default="one-cycle")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if "TRAIN_PYTORCH" not in os.environ:
        os.execve(sys.executable, [sys.executable] + sys.argv, best_environment(options.threads) | {"TRAIN_PYTORCH": "1"})

    import torch
    from torch import nn
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    images, labels = (torch.from_numpy(read(options.data, "train-" + part)) for part in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    test, answers = (torch.from_numpy(read(options.data, "t10k-" + part)) for part in ("images-idx3-ubyte", "labels-idx1-ubyte"))
    model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    steps = options.epochs * -(-len(images) // 128)
    constant = options.schedule == "constant"
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = None if constant else torch.optim.lr_scheduler.OneCycleLR(adam, 4e-3, total_steps=steps, cycle_momentum=False)
    for epoch in range(options.epochs):
        start = time.perf_counter()
        for batch in torch.randperm(len(images)).split(128):
            adam.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            adam.step()
            if schedule:
                schedule.step()
        seconds = time.perf_counter() - start
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(test.split(1000), answers.split(1000)))
        print(f"epoch {epoch + 1}/{options.epochs}: test accuracy {100 * right / len(test):.2f} %, "
              f"{len(images) / seconds:.0f} images/s, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
