// The memory of intermediates: values that are not alive at the same time share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/cl/memory_pool.h"

namespace clnet::exec {

/// A value's size, and the first and last command that use it.
struct Lifetime {
  std::size_t bytes, first, last;
};

struct Layout {
  struct Place {
    std::size_t segment, offset;  ///< bytes; offsets are multiples of Layout::alignment
  };
  static constexpr std::size_t alignment = 128;

  std::vector<Place> places;          ///< one per value
  std::vector<std::size_t> segments;  ///< bytes of each
  std::size_t bytes() const;
};

/// Places the values so that no two live ones overlap: the largest first, each as low as possible. Thousands of values are placed
/// in their given order, which is faster. A segment exceeds `most` bytes only for a single value.
Layout lay_out(const std::vector<Lifetime>& values, std::size_t most);

/// The memory that all plans of a device share: plans run one after the other, and nothing here outlives a run.
class Arena {
 public:
  /// Makes every segment at least as large as requested. `what` is called when memory runs out, for the error text.
  void reserve(ocl::MemoryPool& pool, const std::vector<std::size_t>& segments, const std::function<std::string()>& what);
  const ocl::BufferPtr& segment(std::size_t index) const { return segments_[index]; }
  /// Changes with every change of a segment.
  std::uint64_t version() const { return version_; }
  void clear();
  std::size_t bytes() const;

 private:
  std::vector<ocl::BufferPtr> segments_;
  std::uint64_t version_ = 1;
};

}  // namespace clnet::exec
