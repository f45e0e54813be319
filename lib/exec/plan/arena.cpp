#include "lib/exec/plan/arena.h"

#include <algorithm>
#include <numeric>

namespace clnet::exec {

std::size_t Layout::bytes() const { return std::accumulate(segments.begin(), segments.end(), std::size_t{0}); }

namespace {

std::size_t aligned(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + Layout::alignment - 1) / Layout::alignment * Layout::alignment;
}

/// A segment while it fills: the values in it by offset.
struct Segment {
  struct Used {
    std::size_t begin, end;
    const Lifetime* value;
  };
  std::vector<Used> used;

  /// The lowest offset at which `bytes` are free during the value's life.
  std::size_t fit(const Lifetime& value, std::size_t bytes) const {
    std::size_t offset = 0;
    for (const auto& other : used) {
      if (other.value->last < value.first || value.last < other.value->first) continue;
      if (offset + bytes <= other.begin) break;
      offset = std::max(offset, other.end);
    }
    return offset;
  }

  void add(const Lifetime& value, std::size_t offset, std::size_t bytes) {
    const auto at = std::upper_bound(used.begin(), used.end(), offset,
                                     [](std::size_t begin, const Used& other) { return begin < other.begin; });
    used.insert(at, {offset, offset + bytes, &value});
  }
};

}  // namespace

Layout lay_out(const std::vector<Lifetime>& values, std::size_t most) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a].bytes > values[b].bytes; });

  Layout layout;
  layout.places.resize(values.size());
  std::vector<Segment> segments;
  for (auto index : order) {
    const auto& value = values[index];
    const auto bytes = aligned(value.bytes);
    std::size_t which = 0, offset = 0;
    for (; which < segments.size(); ++which) {
      offset = segments[which].fit(value, bytes);
      if (offset == 0 || offset + bytes <= most) break;
    }
    if (which == segments.size()) {
      segments.emplace_back();
      layout.segments.push_back(0);
      offset = 0;
    }
    segments[which].add(value, offset, bytes);
    layout.segments[which] = std::max(layout.segments[which], offset + bytes);
    layout.places[index] = {which, offset};
  }
  return layout;
}

void Arena::reserve(ocl::MemoryPool& pool, const std::vector<std::size_t>& segments, std::string_view what) {
  if (segments_.size() < segments.size()) segments_.resize(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments_[i] && segments_[i]->bytes() >= segments[i]) continue;
    segments_[i].reset();  // first, so that both need not fit
    ++generation_;
    segments_[i] = pool.allocate(segments[i], what);
  }
}

std::size_t Arena::bytes() const {
  std::size_t total = 0;
  for (const auto& segment : segments_) total += segment ? segment->bytes() : 0;
  return total;
}

void Arena::clear() {
  if (segments_.empty()) return;
  segments_.clear();
  ++generation_;
}

}  // namespace clnet::exec
