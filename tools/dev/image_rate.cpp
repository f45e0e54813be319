// Images per second of an epoch from JPEG files to augmented batches: image_rate FOLDER WORKERS. image_rate.py builds and runs
// it.
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include "clnet/clnet.h"

int main(int argc, char** argv) try {
  using namespace clnet;
  if (argc != 3) {
    std::cerr << "usage: image_rate FOLDER WORKERS" << std::endl;
    return 2;
  }
  const auto images = data::image_folder(argv[1], {.mean = {0.485F, 0.456F, 0.406F},
                                                   .std = {0.229F, 0.224F, 0.225F},
                                                   .crop = 0.08,
                                                   .flip = true,
                                                   .brightness = 0.4,
                                                   .contrast = 0.4,
                                                   .saturation = 0.4,
                                                   .hue = 0.1});
  const data::BatchOptions options{.batch_size = 32, .shuffle = true, .workers = std::stoll(argv[2])};
  const auto epoch = [&] {
    std::int64_t seen = 0;
    for (const auto& batch : data::batches(images, options)) seen += batch.images.shape()[0];
    return seen;
  };
  data::batches(images, {.batch_size = 1, .workers = 0}).begin();  // opens the device
  const auto start = std::chrono::steady_clock::now();
  const auto seen = epoch();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::cout << static_cast<double>(seen) / taken.count() << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << "image_rate: " << error.what() << std::endl;
  return 1;
}
