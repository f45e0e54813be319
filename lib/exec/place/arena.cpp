#include "lib/exec/place/arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "lib/base/planning_steps.h"

namespace clnet::exec {

std::size_t Layout::bytes() const { return std::accumulate(segments.begin(), segments.end(), std::size_t{0}); }

namespace {

std::size_t aligned(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + Layout::alignment - 1) / Layout::alignment * Layout::alignment;
}

/// A segment while it fills: its values by offset.
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
      count_planning(1);
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

/// The free ranges of a segment while memory is taken and returned command by command.
class Heap {
 public:
  /// The smallest free range with room; otherwise the segment grows. Nothing where it would exceed `most`.
  std::optional<std::size_t> take(std::size_t bytes, std::size_t most) {
    count_planning(1);
    if (const auto found = by_size_.lower_bound({bytes, 0}); found != by_size_.end()) {
      const auto [size, offset] = *found;
      erase(offset, size);
      if (size > bytes) insert(offset + bytes, size - bytes);
      return offset;
    }
    // A free range at the end grows to the needed size.
    auto offset = end_;
    if (!by_offset_.empty() && by_offset_.rbegin()->first + by_offset_.rbegin()->second == end_)
      offset = by_offset_.rbegin()->first;
    if (offset != 0 && offset + bytes > most) return std::nullopt;
    if (offset != end_) erase(offset, end_ - offset);
    end_ = offset + bytes;
    return offset;
  }

  void give_back(std::size_t offset, std::size_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      erase(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        erase(before, size);
        offset = before;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  std::size_t end() const { return end_; }

 private:
  void insert(std::size_t offset, std::size_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  void erase(std::size_t offset, std::size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::size_t, std::size_t> by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // size, offset
  std::size_t end_ = 0;
};

/// Places values in order, in the memory of ended ones. It needs a little more memory than the other way, but hardly any time.
Layout lay_out_in_turn(const std::vector<Lifetime>& values, std::size_t most) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(values[a].first, values[b].bytes) < std::pair(values[b].first, values[a].bytes);
  });
  Layout layout;
  layout.places.resize(values.size());
  std::vector<Heap> heaps;
  std::set<std::pair<std::size_t, std::size_t>> alive;  // last command, value
  for (auto index : order) {
    const auto& value = values[index];
    for (; !alive.empty() && alive.begin()->first < value.first; alive.erase(alive.begin())) {
      const auto gone = alive.begin()->second;
      heaps[layout.places[gone].segment].give_back(layout.places[gone].offset, aligned(values[gone].bytes));
    }
    std::optional<std::size_t> offset;
    std::size_t which = 0;
    for (; !offset; ++which) {
      if (which == heaps.size()) heaps.emplace_back();
      offset = heaps[which].take(aligned(value.bytes), most);
    }
    layout.places[index] = {which - 1, *offset};
    alive.insert({value.last, index});
  }
  for (const auto& heap : heaps) layout.segments.push_back(heap.end());
  return layout;
}

}  // namespace

Layout lay_out(const std::vector<Lifetime>& values, std::size_t most) {
  constexpr std::size_t most_compared = 4096;  // limit for comparing every pair of values
  if (values.size() > most_compared) return lay_out_in_turn(values, most);
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

void Arena::reserve(ocl::MemoryPool& pool, const std::vector<std::size_t>& segments, const std::function<std::string()>& what) {
  if (segments_.size() < segments.size()) segments_.resize(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments_[i] && segments_[i]->bytes() >= segments[i]) continue;
    segments_[i].reset();  // first, so that both need not fit
    ++version_;
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
  ++version_;
}

}  // namespace clnet::exec
