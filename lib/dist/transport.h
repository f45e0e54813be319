// How gradients are added over processes, as those see it who fill buckets: post, go on computing, wait.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "clnet/dtype.h"

namespace clnet::dist {

/// Elements in host memory, and where their sums over all ranks are put: the same memory, or another.
struct Addend {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};

/// Host memory whose sums over all ranks are wanted. It stays where it is, and nobody touches it, until that is done.
struct Bucket {
  Dtype dtype;
  std::vector<Addend> addends;
  std::shared_ptr<const void> owner = nullptr;  ///< keeps the memory until then; null: the caller does
  bool beside = false;                          ///< in a turn of its own, beside the group's other collectives
};

inline Addend in_place(std::span<std::byte> bytes) { return {bytes.data(), bytes.data(), bytes.size()}; }

/// Something that was posted and goes on by itself.
class Posted {
 public:
  virtual ~Posted() = default;
  /// Does not wait. Throws RankLost where the job has lost a rank.
  virtual bool done() = 0;
  /// Until it is done. Throws likewise.
  virtual void wait() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// All ranks post buckets of the same sizes in the same order.
  virtual std::shared_ptr<Posted> post(const Bucket& bucket) = 0;
  /// Has all ranks throw RankLost with this reason: what was posted will not be done.
  virtual void abort(std::string_view reason) = 0;
};

}  // namespace clnet::dist
