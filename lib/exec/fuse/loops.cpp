#include "lib/exec/fuse/loops.h"

#include <algorithm>
#include <set>

namespace clnet::exec {

std::optional<std::vector<std::int64_t>> common_loops(const std::vector<Shape>& shapes) {
  // Where dimensions begin, as the number of elements behind that place.
  std::set<std::int64_t> places{1};
  for (const auto& shape : shapes) {
    std::int64_t behind = 1;
    for (int back = 1; back <= shape.rank(); ++back) places.insert(behind *= shape[-back]);
  }
  std::vector<std::int64_t> loops;
  std::int64_t previous = 1;
  for (auto place : places) {
    if (place % previous != 0) return std::nullopt;
    if (place != previous) loops.push_back(place / previous);
    previous = place;
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

Strides linear_strides(const std::vector<std::int64_t>& loops) {
  Strides strides(loops.size());
  std::int64_t stride = 1;
  for (auto d = loops.size(); d-- > 0; stride *= loops[d]) strides[d] = stride;
  return strides;
}

std::optional<Strides> broadcast_strides(const Shape& small, const Shape& large, const Strides& strides,
                                         const std::vector<std::int64_t>& loops) {
  if (small.numel() == large.numel()) return strides;
  Strides result(strides.size(), 0);
  if (large.numel() == 0) return result;
  for (std::size_t d = 0; d < loops.size(); ++d) {
    if (strides[d] == 0) continue;
    // The dimension of `large` that the loop walks along.
    std::int64_t large_stride = 1, small_stride = 1;
    int back = 1;
    for (; back < large.rank() && strides[d] >= large_stride * large[-back]; ++back) {
      large_stride *= large[-back];
      if (back <= small.rank()) small_stride *= small[-back];
    }
    const auto step = strides[d] / large_stride;
    if (strides[d] % large_stride != 0 || step * loops[d] > large[-back]) return std::nullopt;
    if (back <= small.rank() && small[-back] != 1) result[d] = small_stride * step;
  }
  return result;
}

void join_loops(std::vector<std::int64_t>& loops, const std::vector<Strides*>& strides) {
  std::vector<std::int64_t> joined;
  std::vector<Strides> kept(strides.size());
  for (std::size_t d = 0; d < loops.size(); ++d) {
    bool joins = !joined.empty();
    for (std::size_t k = 0; k < strides.size() && joins; ++k) joins = kept[k].back() == (*strides[k])[d] * loops[d];
    if (joins)
      joined.back() *= loops[d];
    else
      joined.push_back(loops[d]);
    for (std::size_t k = 0; k < strides.size(); ++k) {
      if (joins)
        kept[k].back() = (*strides[k])[d];
      else
        kept[k].push_back((*strides[k])[d]);
    }
  }
  if (joined.empty()) {
    joined.push_back(1);
    for (auto& stride : kept) stride.push_back(0);
  }
  loops = std::move(joined);
  for (std::size_t k = 0; k < strides.size(); ++k) *strides[k] = std::move(kept[k]);
}

}  // namespace clnet::exec
