// What clnet-bench measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clnet/nn.h"
#include "clnet/optim.h"
#include "clnet/tensor.h"

namespace clnet::bench {

/// One piece of work, prepared: run() enqueues it once (and waits only where that is part of the work).
using Run = std::function<void()>;

/// A network that trains, and its data in the host's memory.
struct Training {
  std::shared_ptr<nn::Module> model;
  std::shared_ptr<optim::Optimizer> optimizer;
  std::int64_t batch;
  /// Of `count` samples of the batch, from `first` on.
  std::function<Tensor(nn::Module& model, std::int64_t first, std::int64_t count)> loss;
};

struct Item {
  std::string name;
  double work;       ///< per run, in `unit`
  std::string unit;  ///< "FLOP", "byte" or "image"
  double flops;      ///< per run; 0 where arithmetic is not what counts
  double bytes;      ///< that must move at least, each input read and each output written once; 0 where nobody counted
  std::function<Run()> prepare;
  std::function<Training()> training = nullptr;  ///< what prepare() runs steps of, where devices can share its batches
};

/// All items, in the order of --list; those bound by memory are in bench_memory.cpp, functions in
/// bench_functions.cpp, the models at their end in bench_models.cpp.
std::vector<Item> items();
std::vector<Item> memory_items();
std::vector<Item> function_items();
std::vector<Item> model_items();

struct Result {
  double median, best;  ///< seconds
};
/// Runs the item for about `budget` seconds: three runs to warm up, then samples of at least 20 ms each, at least five of them.
Result measure(const Item& item, double budget);

/// The device's own limits, measured: multiply-adds of registers in FLOP/s, and copying of large buffers in bytes/s (read plus
/// written).
struct Peak {
  double flops, bytes;
};
Peak measure_peak();

}  // namespace clnet::bench
