// Locks by key among all processes that use a file: one makes something, the others wait for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "lib/base/os/descriptor.h"

namespace clnet {

/// What one object took, it has until it goes or its process ends, however that ends. Other objects of the process are others.
class KeyLocks {
 public:
  /// Makes the file, and its folder, where they are not there. Its content does not matter, and stays.
  explicit KeyLocks(const std::filesystem::path& file);

  /// Takes a key without waiting for it. False where another has it. Where there are no locks, as in a folder that cannot be
  /// written or on some network's, everybody gets every key.
  bool take(std::string_view key);

 private:
  os::Descriptor file_;
};

}  // namespace clnet
