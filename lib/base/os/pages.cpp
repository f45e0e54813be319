#include "lib/base/os/pages.h"

#include <sys/mman.h>

#include <memory>

namespace clnet::os {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

void prefer_huge_pages(void* begin, std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  auto* first = std::align(huge_page, huge_page, begin, bytes);
  // Only a hint: the bytes are as good on other pages.
  if (first) (void)::madvise(first, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#else
  (void)begin;
  (void)bytes;
#endif
}

}  // namespace clnet::os
