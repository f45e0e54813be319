// Built programs kept across runs: one file each, whole or not used at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clnet::ocl {

/// The cache never fails: what it cannot read it does not find, and what it cannot write is not kept.
class DiskCache {
 public:
  /// Files go into `folder`, which is made when the first one is stored.
  explicit DiskCache(std::string folder);

  /// The content stored under exactly this key, or nothing when missing, damaged, or of another key with the same hash.
  std::optional<std::string> load(std::string_view key) const;
  void store(std::string_view key, std::string_view content) const;
  /// The file of a key.
  std::string path(std::string_view key) const;

 private:
  std::string folder_;
};

}  // namespace clnet::ocl
