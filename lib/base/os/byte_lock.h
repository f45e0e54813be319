// Locks of single bytes of a file.
#pragma once

#include <cstdint>

#include "lib/base/os/descriptor.h"

namespace clnet::os {

/// How an attempt to lock a byte ends.
enum class ByteLock : std::uint8_t {
  taken,
  elsewhere,   ///< who opened the file another time has it
  unavailable  ///< not on this system or file
};

/// Locks the byte at `offset`, which the file need not have, for this open file. Does not wait. The file is open for writing.
/// Closing frees it, also that by the end of the process.
ByteLock lock_byte(const Descriptor& file, std::uint64_t offset);

}  // namespace clnet::os
