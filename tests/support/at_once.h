// Several threads that do what docs/developer/guarantees.md allows at the same time.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace clnet::test {

/// Runs the bodies in a thread each, several times; a failure in one is a failure of the test.
inline void at_once(const std::vector<std::function<void(int)>>& bodies, int rounds) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (const auto& body : bodies) {
    threads.emplace_back([&] {
      try {
        for (int round = 0; round < rounds; ++round) body(round);
      } catch (const std::exception&) {
        ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
}

}  // namespace clnet::test
