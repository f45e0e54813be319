// The pages of this process's memory.
#pragma once

#include <cstddef>

namespace clnet::os {

/// Asks for pages of 2 MiB under these bytes, which nobody has touched yet: fewer addresses to translate. The system may not have
/// any, and small arrays hold none.
void prefer_huge_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace clnet::os
