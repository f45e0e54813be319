// Host memory for what goes to the host and back in every step.
#include "lib/cl/staging.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>

#include "clnet/clnet.h"
#include "lib/cl/context.h"

using namespace clnet;

TEST_CASE("staging memory is kept from one step to the next where it is pinned") {
  constexpr std::size_t bytes = 1 << 20;
  auto& context = *context_of(Device::current());
  auto& staging = context.extension<ocl::Staging>();
  auto first = staging.take(bytes);
  std::memset(first.get(), 1, bytes);
  const auto* address = first.get();
  const auto second = staging.take(bytes);
  CHECK(second.get() != address);
  std::memset(second.get(), 2, bytes);
  CHECK(first[bytes - 1] == std::byte{1});
  if (context.info().unified_memory) return;

  first = nullptr;
  SECTION("the next one of its size") { CHECK(staging.take(bytes - 100).get() == address); }
  SECTION("a small one is no use of it") { CHECK(staging.take(bytes / 4).get() != address); }
  SECTION("after the last handle only") {
    const auto again = staging.take(bytes);
    CHECK(staging.take(bytes).get() != address);
  }
}

TEST_CASE("staging memory outlives what is freed and is nothing for nothing") {
  auto& context = *context_of(Device::current());
  auto& staging = context.extension<ocl::Staging>();
  const auto block = staging.take(1000);
  context.trim();
  std::memset(block.get(), 1, 1000);
  const auto nothing = staging.take(0);
  CHECK(nothing != block);
}
