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
#include <vector>

#include "lib/cl/memory_pool.h"
#include "lib/exec/record/value.h"

namespace clnet::exec {

/// The values of one form (see CachedForm), made from certain leaves. Their launches are enqueued.
struct CachedEntry {
  std::shared_ptr<const std::string> text;  ///< how they were made
  std::vector<std::uint64_t> sources;       ///< the ids of the DeviceValues that they were made from
  std::vector<std::uint64_t> scalars;       ///< and the bits of the host's scalars
  std::vector<ocl::BufferPtr> buffers;      ///< in the order of the form's values

  std::size_t bytes() const;
};
using CachedEntryPtr = std::shared_ptr<const CachedEntry>;

/// Any thread may call it. A run holds the entries that it uses; what nobody holds may go at any time.
class CLNET_API CachedValues {
 public:
  /// The entry of this text, these sources and these scalars; null when there is none.
  CachedEntryPtr find(const std::string& text, const std::vector<std::uint64_t>& sources,
                      const std::vector<std::uint64_t>& scalars);
  /// Keeps the entry until one of its sources dies, memory is short, or other scalars take its place. The caller holds the
  /// sources.
  void publish(CachedEntryPtr entry);
  /// A source is gone.
  void drop(std::uint64_t source);
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

  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_multimap<std::size_t, Entries::iterator> by_key_;
  std::unordered_multimap<std::uint64_t, Entries::iterator> by_source_;
};

}  // namespace clnet::exec
