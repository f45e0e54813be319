#include "lib/base/checksum.h"

#include <fmt/format.h>

namespace clnet {

std::string Checksum::text() const { return fmt::format("{:08x}", sum_); }

void Checksum::update(const void* data, std::size_t bytes) {
  // zlib takes a null pointer, which an empty vector has, for the wish to begin anew.
  if (bytes != 0) sum_ = ::crc32_z(sum_, static_cast<const Bytef*>(data), bytes);
}

}  // namespace clnet
