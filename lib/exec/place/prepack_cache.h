// Values made from leaves only and kept while these live: prepacked weights, folded scales. One cache per device, for all plans;
// an entry's key is its sources and the way it was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/cl/memory_pool.h"
#include "lib/exec/collect/value.h"

namespace clnet::exec {

/// The values of one Prepack, made from certain leaves. Their launches are enqueued.
struct Prepacked {
  std::shared_ptr<const std::string> text;  ///< the way they were made
  std::vector<std::uint64_t> sources;       ///< ids of the DeviceValues that they were made from
  std::vector<std::uint64_t> scalars;       ///< bits of the host scalars
  std::vector<ocl::BufferPtr> buffers;      ///< in the order of the prepack's values
  bool small = false;                       ///< see Prepack

  std::size_t bytes() const;
};
using PrepackedPtr = std::shared_ptr<const Prepacked>;

/// Any thread may call it. A run holds its entries; others may be dropped at any time.
class PrepackCache final : public MadeOfValues {
 public:
  /// The entry with this text, these sources and these scalars; null where there is none.
  PrepackedPtr find(const std::string& text, const std::vector<std::uint64_t>& sources,
                    const std::vector<std::uint64_t>& scalars);
  /// The most bytes of small entries.
  static constexpr std::size_t most_small = 16 << 20;

  /// Keeps the entry until a source dies, memory is short, or other scalars replace it. The caller holds the sources. False: not
  /// kept.
  ///
  /// A small entry is kept only when offered a second time with the same sources and scalars. It is dropped once others of
  /// `most_small` bytes were used later. A value read once, as from a data set's tensors or random numbers, is not worth its
  /// memory.
  bool publish(PrepackedPtr entry);
  /// A source is gone.
  void drop(std::uint64_t source) override;
  /// Drops at least `bytes` bytes of entries that no run holds, the least recently used first.
  void evict(std::size_t bytes);
  void clear();
  std::size_t count() const;
  std::size_t bytes() const;

 private:
  using Entries = std::list<PrepackedPtr>;  ///< the last used first
  static std::size_t hash(const std::string& text, const std::vector<std::uint64_t>& sources);
  Entries::iterator lookup(const std::string& text, const std::vector<std::uint64_t>& sources);
  /// Call it with the mutex held; the entry's memory is freed with the result.
  PrepackedPtr remove(Entries::iterator entry);
  /// Whether the same entry was offered before, as far as remembered.
  bool is_known(const Prepacked& entry);

  mutable std::mutex mutex_;
  Entries entries_;
  std::size_t small_bytes_ = 0;
  std::unordered_set<std::size_t> offered_;  ///< small entries, as hashes
  std::unordered_multimap<std::size_t, Entries::iterator> by_key_;
  std::unordered_multimap<std::uint64_t, Entries::iterator> by_source_;
};

}  // namespace clnet::exec
