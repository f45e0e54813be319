#include "lib/exec/fuse/order.h"

#include "lib/base/planning_steps.h"

namespace clnet::exec {

namespace {

constexpr int label_bits = 62;

}  // namespace

Order::Order(std::size_t count) : next_(count + 2), previous_(count + 2), labels_(count + 2) {
  const std::size_t first = count, last = count + 1;
  const auto gap = (std::uint64_t{1} << label_bits) / (count + 1);
  labels_[first] = 0;
  std::size_t at = first;
  for (std::size_t i = 0; i < count; ++i) {
    labels_[i] = (i + 1) * gap;
    next_[at] = i;
    previous_[i] = at;
    at = i;
  }
  labels_[last] = std::uint64_t{1} << label_bits;
  next_[at] = last;
  previous_[last] = at;
}

void Order::move(std::size_t what, std::size_t left, std::size_t right) {
  if (left == what || right == what) return;  // it is there
  next_[previous_[what]] = next_[what];
  previous_[next_[what]] = previous_[what];
  if (labels_[right] - labels_[left] < 2) make_room(left < labels_.size() - 2 ? left : right);
  labels_[what] = labels_[left] + (labels_[right] - labels_[left]) / 2;
  next_[left] = previous_[right] = what;
  previous_[what] = left;
  next_[what] = right;
}

void Order::make_room(std::size_t at) {
  const auto ends = labels_.size() - 2;
  std::size_t first = at, last = at, count = 1;
  double most = 1;  // things in so many labels
  for (int bits = 1; bits <= label_bits; ++bits) {
    most *= 2 / 1.2;
    const auto base = labels_[at] >> bits;
    const auto inside = [&](std::size_t other) { return other < ends && labels_[other] >> bits == base; };
    for (; inside(previous_[first]); ++count) first = previous_[first];
    for (; inside(next_[last]); ++count) last = next_[last];
    count_planning(1);
    if (static_cast<double>(count) > most || first >= ends) continue;
    const auto gap = (std::uint64_t{1} << bits) / (count + 1);
    if (gap < 2) continue;
    count_planning(count);
    auto label = base << bits;
    for (auto i = first;; i = next_[i]) {
      labels_[i] = label += gap;
      if (i == last) return;
    }
  }
}

}  // namespace clnet::exec
