// Built programs, kept across runs: one file each, used only where complete.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clnet::ocl {

/// The cache never throws: an unreadable entry counts as missing, and a failed write is dropped.
class DiskCache {
 public:
  /// Files go into `folder`, which the first store() creates.
  explicit DiskCache(std::string folder);

  /// The content of exactly this key. Nothing where it is missing, damaged, or of another key with the same hash.
  std::optional<std::string> load(std::string_view key) const;
  void store(std::string_view key, std::string_view content) const;
  /// Whether there is a file for the key.
  bool has(std::string_view key) const;
  /// The file of a key.
  std::string path(std::string_view key) const;
  /// The file with the locks (KeyLocks) of processes that make contents.
  std::string locks() const { return folder_ + ".lock"; }

 private:
  std::string folder_;
};

}  // namespace clnet::ocl
