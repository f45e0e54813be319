#include "lib/base/hash.h"

#include <fmt/format.h>

namespace clnet {

std::string Hash::hex() const { return fmt::format("{:016x}", state_); }

}  // namespace clnet
