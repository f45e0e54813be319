#include "lib/base/os/byte_lock.h"

#include <fcntl.h>

#include <cerrno>

namespace clnet::os {

ByteLock lock_byte([[maybe_unused]] const Descriptor& file, [[maybe_unused]] std::uint64_t offset) {
#ifdef F_OFD_SETLK
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(offset);
  byte.l_len = 1;
  if (::fcntl(file.number(), F_OFD_SETLK, &byte) == 0) return ByteLock::taken;
  if (errno == EAGAIN || errno == EACCES) return ByteLock::elsewhere;
#endif
  return ByteLock::unavailable;
}

}  // namespace clnet::os
