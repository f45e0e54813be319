#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "clnet/error.h"
#include "lib/cl/context.h"
#include "lib/cl/memory_pool.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::ocl;

namespace {

constexpr std::size_t mib = 1 << 20;

/// A pool of its own, on the device of the tests, with limits of its own.
struct Pool {
  std::shared_ptr<Context> context = context_of(Device::current());
  DeviceInfo info = context->info();
  MemoryPool pool;
  explicit Pool(std::size_t memory = 64 * mib, std::size_t largest = 16 * mib)
      : pool(context->context(), context->device(), limited(info, memory, largest)) {}
  static const DeviceInfo& limited(DeviceInfo& info, std::size_t memory, std::size_t largest) {
    info.global_memory = memory;
    info.max_allocation = largest;
    return info;
  }
};

}  // namespace

TEST_CASE("a buffer that was given back is used again") {
  Pool p;
  cl_mem first = nullptr;
  {
    const BufferPtr buffer = p.pool.allocate(mib, "a");
    CHECK(buffer->bytes() == mib);
    first = buffer->memory()();
    CHECK(p.pool.stats().in_use == mib);
    CHECK(p.pool.stats().pooled == 0);
  }
  CHECK(p.pool.stats().in_use == 0);
  CHECK(p.pool.stats().pooled == mib);
  const BufferPtr again = p.pool.allocate(mib - 5000, "b");
  CHECK(again->memory()() == first);
  CHECK(again->bytes() == mib - 5000);
  CHECK(p.pool.stats().allocations == 1);
  // Too different in size: a large buffer is not spent on a small value.
  const BufferPtr small = p.pool.allocate(1000, "c");
  CHECK(p.pool.stats().allocations == 2);
  CHECK(p.pool.stats().high_water == p.pool.stats().in_use);
}

TEST_CASE("every size gets a buffer of at least that size, and little more") {
  Pool p;
  for (std::size_t bytes : {0u, 1u, 255u, 257u, 4096u, 5000u, 65537u, 1000003u}) {
    const BufferPtr buffer = p.pool.allocate(bytes, "x");
    const std::size_t real = buffer->memory().getInfo<CL_MEM_SIZE>();
    CHECK(real >= std::max<std::size_t>(bytes, 1));
    CHECK(real <= bytes + bytes / 8 + 256);
    CHECK(buffer->bytes() == std::max<std::size_t>(bytes, 1));
  }
}

TEST_CASE("trimming gives back what is kept, not what is used") {
  Pool p;
  const BufferPtr used = p.pool.allocate(mib, "used");
  p.pool.allocate(2 * mib, "dropped");
  CHECK(p.pool.stats().pooled == 2 * mib);
  p.pool.trim();
  CHECK(p.pool.stats().pooled == 0);
  CHECK(p.pool.stats().in_use == mib);
}

TEST_CASE("kept buffers make room before the limit is an error") {
  Pool p(8 * mib);
  p.pool.allocate(5 * mib, "first");
  CHECK(p.pool.stats().pooled == 5 * mib);
  const BufferPtr second = p.pool.allocate(7 * mib, "second");
  CHECK(p.pool.stats().pooled == 0);
  CHECK(p.pool.stats().in_use == 7 * mib);
}

TEST_CASE("running out of memory names the value, the use and the limit, and harms nothing") {
  Pool p(8 * mib);
  const BufferPtr held = p.pool.allocate(6 * mib, "held");
  const MemoryStats before = p.pool.stats();
  CHECK_THROWS_WITH(
      p.pool.allocate(3 * mib, "f32 [3,512,512]"),
      "out of memory: f32 [3,512,512] needs 3072.0 KiB (3145728 bytes), in use are 6144.0 KiB, the limit is 8192.0 KiB");
  CHECK_THROWS_AS(p.pool.allocate(3 * mib, "again"), DeviceError);
  CHECK(p.pool.stats().in_use == before.in_use);
  CHECK(p.pool.stats().allocations == before.allocations);
  CHECK(p.pool.allocate(2 * mib, "fits")->bytes() == 2 * mib);
}

TEST_CASE("nothing above the device's largest allocation reaches the driver") {
  Pool p(64 * mib, 4 * mib);
  CHECK_THROWS_WITH(p.pool.allocate(4 * mib + 1, "x"), Catch::Contains("largest allocation is 4096.0 KiB"));
  CHECK_THROWS_AS(p.pool.allocate(~std::size_t{0}, "all of it"), DeviceError);
  CHECK(p.pool.stats().allocations == 0);
  CHECK(p.pool.allocate(4 * mib, "just fits")->memory().getInfo<CL_MEM_SIZE>() == 4 * mib);
  // Whose size class would be above it.
  CHECK(p.pool.allocate(4 * mib - 1, "just fits")->memory().getInfo<CL_MEM_SIZE>() == 4 * mib);
}

TEST_CASE("the limit comes from the environment and can be changed") {
  const test::Variable limit("CLNET_MEMORY_LIMIT", "2M");
  Pool p;
  CHECK(p.pool.stats().limit == 2 * mib);
  CHECK_THROWS_AS(p.pool.allocate(3 * mib, "x"), DeviceError);
  p.pool.set_limit(4 * mib);
  { const BufferPtr buffer = p.pool.allocate(3 * mib, "x"); }
  CHECK(p.pool.stats().pooled == 3 * mib);
  p.pool.set_limit(mib);
  CHECK(p.pool.stats().pooled == 0);
  p.pool.set_limit(0);
  CHECK(p.pool.stats().limit == 64 * mib);
  const test::Variable wrong("CLNET_MEMORY_LIMIT", "much");
  CHECK_THROWS_WITH(Pool(), Catch::Contains("CLNET_MEMORY_LIMIT=much"));
}

TEST_CASE("a buffer used beyond a lowered limit is not kept") {
  Pool p;
  BufferPtr buffer = p.pool.allocate(4 * mib, "x");
  p.pool.set_limit(mib);
  buffer.reset();
  CHECK(p.pool.stats().pooled == 0);
  CHECK(p.pool.stats().in_use == 0);
}

TEST_CASE("others are asked to let go before an error") {
  Pool p(8 * mib);
  BufferPtr kept_by_other = p.pool.allocate(6 * mib, "kept");
  int asked = 0;
  p.pool.set_reclaim([&](std::size_t) {
    ++asked;
    kept_by_other.reset();
  });
  CHECK(p.pool.allocate(5 * mib, "x")->bytes() == 5 * mib);
  CHECK(asked == 1);
}

TEST_CASE("a buffer may outlive its pool") {
  auto p = std::make_unique<Pool>();
  const BufferPtr buffer = p->pool.allocate(mib, "x");
  p.reset();
  CHECK(buffer->memory().getInfo<CL_MEM_SIZE>() >= mib);
}

TEST_CASE("several threads share a pool without losing count") {
  if (!Device::current().info().thread_safe) return clnet::test::skip("the device takes one thread only");
  Pool p;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed]() mutable {
      std::vector<BufferPtr> held(8);
      for (int i = 0; i < 2000; ++i) {
        seed = seed * 1664525u + 1013904223u;
        try {
          held[seed >> 29] = p.pool.allocate((seed >> 8) % (3 * mib), "x");
        } catch (const DeviceError&) {
          ++failures;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const MemoryStats stats = p.pool.stats();
  CHECK(stats.in_use == 0);
  CHECK(stats.pooled <= stats.limit);
  CHECK(stats.high_water <= stats.limit);
  CHECK(stats.high_water > 0);
  CHECK(failures < 8000);
}
