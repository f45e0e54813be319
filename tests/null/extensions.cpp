// What floors above keep for a device.
#include <catch2/catch.hpp>
#include <cstddef>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "tests/support/memory_limit.h"

using namespace clnet;

namespace {

/// Each type is one of its own.
template <int Number>
struct Counting : ocl::Context::Extension {
  explicit Counting(ocl::Context& context) : of(&context) {}
  void trim() override { ++trims; }
  void reclaim(std::size_t) override { ++reclaims; }

  ocl::Context* of;
  int trims = 0, reclaims = 0;
};

}  // namespace

TEST_CASE("a device keeps one extension of each type") {
  auto& context = *context_of(Device::current());
  auto& first = context.extension<Counting<1>>();
  auto& second = context.extension<Counting<2>>();
  CHECK(first.of == &context);
  CHECK(&context.extension<Counting<1>>() == &first);
  CHECK(&context.extension<Counting<2>>() == &second);
  CHECK(static_cast<ocl::Context::Extension*>(&first) != &second);

  SECTION("all of them let go of memory") {
    const auto before = first.trims;
    context.trim();
    CHECK(first.trims == before + 1);
    CHECK(second.trims == before + 1);
  }
  SECTION("all of them are asked when memory is short") {
    auto& memory = context.memory();
    const test::MemoryLimit limit(memory.stats().in_use + (1 << 20));
    const auto before = first.reclaims;
    CHECK_THROWS_AS(memory.allocate(2 << 20, "a test"), DeviceError);
    CHECK(first.reclaims > before);
    CHECK(second.reclaims == first.reclaims);
  }
}
