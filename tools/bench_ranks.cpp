#include "tools/bench_ranks.h"

#include <span>

#include "clnet/train.h"

namespace clnet::bench {

const dist::Group& ranks() {
  static const auto group = dist::init();
  return group;
}

void add_gradients_of_ranks(optim::Optimizer& optimizer) {
  if (ranks().size() > 1) train::add_gradients(optimizer, ranks());
}

std::int64_t of_rank_0(std::int64_t value) {
  dist::broadcast(std::span(&value, 1), 0, ranks());
  return value;
}

}  // namespace clnet::bench
