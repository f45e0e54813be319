#!/usr/bin/env python3
"""Measures images per second from JPEG files to augmented batches: clnet beside torchvision in PyTorch's DataLoader, in turn.

  tools/dev/image_rate.py [--build build] [--images 2000] [--rounds 5] [--workers N] [--folder FOLDER]

Needs a build of the library with libjpeg-turbo, a C++ compiler, and for the Python that runs it torch, torchvision, pillow and numpy.
It writes JPEG files of about 500 x 375 in ten folders (to FOLDER, else to a temporary one). Both sides cut a random part out, resize it
to 224 x 224, mirror half of the images, change brightness, contrast, saturation and hue, normalise, and make batches of 32 with as many
workers as cores. A worker of clnet is a thread, one of PyTorch a process. An epoch of each is measured in turn, after one that is not
counted. A ratio is clnet's rate by torchvision's: above 1, clnet is faster.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import numpy
import torch
import torchvision
from PIL import Image
from torchvision import transforms

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES, BATCH, SIDE = 10, 32, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_images(folder, count):
    """Noise of several scales: files of about 100 kB, as photographs have."""
    random = numpy.random.default_rng(1)
    for i in range(count):
        height, width = int(random.integers(340, 411)), int(random.integers(460, 541))
        image = numpy.zeros((height, width, 3))
        for cells, depth in ((6, 90), (25, 50), (90, 30)):
            noise = random.normal(size=(cells, cells, 3)).clip(-2, 2) * 60 + 128
            layer = Image.fromarray(noise.clip(0, 255).astype(numpy.uint8)).resize((width, height), Image.Resampling.BICUBIC)
            image += (numpy.asarray(layer) - 128.0) * depth / 60
        image += random.normal(size=(height, width, 1)) * 8
        path = os.path.join(folder, f"class{i % CLASSES}")
        os.makedirs(path, exist_ok=True)
        Image.fromarray((image + 128).clip(0, 255).astype(numpy.uint8)).save(os.path.join(path, f"{i}.jpg"), quality=90)


def build_program(build, target):
    root = os.path.dirname(os.path.dirname(HERE))
    subprocess.run(["g++", "-std=c++20", "-O1", "-I", os.path.join(root, "include"), "-I", os.path.join(build, "include"),
                    os.path.join(HERE, "image_rate.cpp"), "-o", target, os.path.join(build, "libclnet.so"),
                    "-Wl,-rpath," + os.path.abspath(build)], check=True)


def of_torchvision(folder, workers):
    """Makes a function that gives the rate of an epoch."""
    dataset = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
        transforms.ToTensor(), transforms.Normalize(MEAN, STD)]))
    loader = torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=True)

    def epoch():
        start, seen = time.perf_counter(), 0
        for images, _ in loader:
            seen += len(images)
        return seen / (time.perf_counter() - start)
    return epoch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or os.path.join(temporary, "images")
        if not os.path.isdir(folder):
            write_images(folder, options.images)
        program = os.path.join(temporary, "image_rate")
        build_program(options.build, program)

        def of_clnet():
            return float(subprocess.run([program, folder, str(options.workers)], check=True, stdout=subprocess.PIPE).stdout)
        theirs = of_torchvision(folder, options.workers)
        theirs()
        ratios = []
        for number in range(options.rounds):
            ours, peers = of_clnet(), theirs()
            ratios.append(ours / peers)
            print(f"round {number + 1}: clnet {ours:.1f} images/s, torchvision {peers:.1f}, ratio {ratios[-1]:.2f}", flush=True)
        print(f"{options.workers} workers: median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
