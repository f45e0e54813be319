// What is made of leaves only and kept while they live: weights in panels, folded scales. One per device, for all plans: what it
// knows a value by is what the value was made from, and how.
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

/// The values of one form (see CachedForm), made from certain leaves. Their launches are enqueued.
struct CachedEntry {
  std::shared_ptr<const std::string> text;  ///< how they were made
  std::vector<std::uint64_t> sources;       ///< the ids of the DeviceValues that they were made from
  std::vector<std::uint64_t> scalars;       ///< and the bits of the host's scalars
  std::vector<ocl::BufferPtr> buffers;      ///< in the order of the form's values
  bool small = false;                       ///< see CachedForm

  std::size_t bytes() const;
};
using CachedEntryPtr = std::shared_ptr<const CachedEntry>;

/// Any thread may call it. A run holds the entries that it uses; what nobody holds may go at any time.
class CachedValues final : public MadeOfValues {
 public:
  /// The entry of this text, these sources and these scalars; null when there is none.
  CachedEntryPtr find(const std::string& text, const std::vector<std::uint64_t>& sources,
                      const std::vector<std::uint64_t>& scalars);
  /// The most bytes of small entries.
  static constexpr std::size_t most_small = 16 << 20;

  /// Keeps the entry until one of its sources dies, memory is short, or other scalars take its place. The caller holds the
  /// sources. A small one is kept when it was offered before, of the same sources and scalars, and at most until others of
  /// `most_small` bytes were used later: what is read once, as the tensors of a data set, or made of random numbers, is not worth
  /// its memory. False: not kept.
  bool publish(CachedEntryPtr entry);
  /// A source is gone.
  void drop(std::uint64_t source) override;
  /// Drops entries that no run holds, the least recently used first, until `bytes` of them are gone.
  void evict(std::size_t bytes);
  void clear();
  std::size_t count() const;
  std::size_t bytes() const;

 private:
  using Entries = std::list<CachedEntryPtr>;  ///< the last used first
  static std::size_t hash(const std::string& text, const std::vector<std::uint64_t>& sources);
  Entries::iterator lookup(const std::string& text, const std::vector<std::uint64_t>& sources);
  /// With the mutex held; the entry's memory is freed when the result is.
  CachedEntryPtr remove(Entries::iterator entry);
  /// Whether the same was offered before, as far as that is remembered.
  bool is_known(const CachedEntry& entry);

  mutable std::mutex mutex_;
  Entries entries_;
  std::size_t small_bytes_ = 0;
  std::unordered_set<std::size_t> offered_;  ///< small entries, as hashes
  std::unordered_multimap<std::size_t, Entries::iterator> by_key_;
  std::unordered_multimap<std::uint64_t, Entries::iterator> by_source_;
};

}  // namespace clnet::exec
