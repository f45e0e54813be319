// Devices that use the host's memory share one limit.
#include "lib/cl/host_budget.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "clnet/clnet.h"
#include "lib/cl/context.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

constexpr std::size_t one_mib = 1 << 20;

/// Two devices with a limit each.
struct Limited {
  test::Variable variable{"NULL_OPENCL_DEVICES", "2"};
  Device first = Device::find("0:0"), second = Device::find("0:1");
  explicit Limited(std::size_t bytes) {
    for (auto* device : {&first, &second}) {
      device->trim();
      device->set_memory_limit(bytes);
    }
  }
  ~Limited() {
    for (auto* device : {&first, &second}) device->set_memory_limit(0);
  }
  ocl::MemoryPool& pool(const Device& device) const { return context_of(device)->memory(); }
};

}  // namespace

TEST_CASE("host budget: two devices have one limit together where their memory is the host's") {
  const Limited two(64 * one_mib);
  const auto before = two.first.memory().in_use + two.second.memory().in_use;
  const auto one = two.pool(two.first).allocate(40 * one_mib, "one");
  const auto other = [&] { return two.pool(two.second).allocate(40 * one_mib, "another"); };
  if (!two.first.info().unified_memory) {
    CHECK(other() != nullptr);
    return;
  }
  CHECK_THROWS_WITH(other(),
                    Catch::Contains("out of memory: another") && Catch::Contains("all devices on the host's memory have"));
  CHECK(two.second.memory().in_use + two.first.memory().in_use == before + 40 * one_mib);
  CHECK(two.pool(two.second).allocate(20 * one_mib, "what is left") != nullptr);
}

TEST_CASE("host budget: unused buffers of one device make room for another") {
  const Limited two(64 * one_mib);
  two.pool(two.first).allocate(40 * one_mib, "unused");
  CHECK(two.first.memory().pooled >= 40 * one_mib);
  const auto other = two.pool(two.second).allocate(40 * one_mib, "another");
  if (two.first.info().unified_memory) CHECK(two.first.memory().pooled < 40 * one_mib);
  CHECK(two.first.memory().pooled + two.first.memory().in_use + two.second.memory().pooled + two.second.memory().in_use <=
        (two.first.info().unified_memory ? 64 : 128) * one_mib);
}

TEST_CASE("host budget: the largest of the limits counts, and a pool that ends gives its bytes back") {
  ocl::HostBudget budget;
  std::vector<std::size_t> dropped;
  ocl::HostBudget::Share one(budget, 100, [&](std::size_t bytes) { dropped.push_back(bytes); });
  {
    ocl::HostBudget::Share two(budget, 300, nullptr);
    CHECK(budget.limit() == 300);
    CHECK(one.take(250));
    CHECK(two.take(50));
    CHECK_FALSE(two.take(1));
    CHECK(one.taken_by_others() == 50);
    two.make_room(30);
    CHECK(dropped == std::vector<std::size_t>{30});
    one.make_room(30);  // nothing of its own
    CHECK(dropped.size() == 1);
    two.set_limit(400);
    CHECK(two.take(100));
  }
  CHECK(budget.limit() == 100);
  CHECK(budget.taken() == 250);
  CHECK_FALSE(one.take(1));
  one.give(250);
  CHECK(one.take(100));
}

TEST_CASE("host budget: threads of several pools never take more than there is") {
  ocl::HostBudget budget;
  std::atomic<std::size_t> most{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      ocl::HostBudget::Share share(budget, 1000, nullptr);
      for (std::size_t i = 0; i < 2000; ++i) {
        const auto bytes = 1 + i % 400;
        if (!share.take(bytes)) continue;
        const auto now = budget.taken();
        for (auto known = most.load(); known < now && !most.compare_exchange_weak(known, now);) {
        }
        share.give(bytes);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(most <= 1000);
  CHECK(budget.taken() == 0);
}
