#include "lib/base/key_locks.h"

#include <system_error>

#include "lib/base/hash.h"
#include "lib/base/os/byte_lock.h"

namespace clnet {

KeyLocks::KeyLocks(const std::filesystem::path& file) {
  std::error_code code;
  std::filesystem::create_directories(file.parent_path(), code);
  file_ = os::open(file, os::Opening::append_or_create);
}

bool KeyLocks::take(std::string_view key) {
  // A byte for each key, which the file need not have. Two keys of one byte would only wait for each other.
  return !file_.is_open() || os::lock_byte(file_, Hash().add(key).value() >> 1) != os::ByteLock::elsewhere;
}

}  // namespace clnet
