// lib/data/ordered_workers.h without a device: order, bounds, exceptions, ends.
#include "lib/data/ordered_workers.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <string>

namespace clnet::data {
namespace {

using namespace std::chrono_literals;
using Workers = OrderedWorkers<int, int>;

/// Claims 0..count-1 and makes squares, later ones faster.
Workers::Steps squares(int count) {
  return {[count, next = 0](const Stopping&) mutable { return next < count ? std::optional(next++) : std::nullopt; },
          [](int number, const Stopping&) {
            std::this_thread::sleep_for(std::chrono::microseconds(200 * (5 - number % 6)));
            return number * number;
          }};
}

TEST_CASE("workers: items come in order for any number of workers and any prefetch") {
  for (const int workers : {0, 1, 2, 5})
    for (const int prefetch : {0, 1, 7}) {
      if (workers + prefetch == 0) continue;
      Workers items(squares(40), workers, prefetch);
      for (int i = 0; i < 40; ++i) CHECK(items.take() == i * i);
      CHECK(!items.take());
      CHECK(!items.take());
    }
}

TEST_CASE("workers: no more items are claimed than the bound") {
  for (const int workers : {1, 3}) {
    std::atomic<int> claimed = 0, made = 0;
    Workers items({[&](const Stopping&) { return std::optional(claimed++); },
                   [&](int number, const Stopping&) {
                     ++made;
                     return number;
                   }},
                  workers, 2);
    for (int taken = 0; taken < 20; ++taken) {
      CHECK(claimed <= taken + workers + 2);
      CHECK(items.take() == taken);
    }
    while (made < 20 + workers + 2) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    CHECK(claimed == 20 + workers + 2);
  }
}

TEST_CASE("workers: an exception comes in its place, and is the end") {
  for (const int workers : {0, 1, 2, 5}) {
    auto steps = squares(40);
    steps.make = [](int number, const Stopping&) {
      if (number >= 7) throw std::runtime_error(std::to_string(number));
      return number;
    };
    Workers items(steps, workers, 2);
    for (int i = 0; i < 7; ++i) CHECK(items.take() == i);
    CHECK_THROWS_WITH(items.take(), "7");
    CHECK(!items.take());
  }
  for (const int workers : {0, 1, 2, 5}) {
    auto steps = squares(40);
    steps.claim = [next = 0](const Stopping&) mutable {
      if (next == 4) throw std::runtime_error("claim 4");
      return std::optional(next++);
    };
    Workers items(steps, workers, 2);
    for (int i = 0; i < 4; ++i) CHECK(items.take() == i * i);
    CHECK_THROWS_WITH(items.take(), "claim 4");
    CHECK(!items.take());
  }
}

TEST_CASE("workers: who goes waits for the step under way, and for no more") {
  for (const int workers : {1, 5}) {
    std::atomic<int> steps_made = 0;
    const auto before = std::chrono::steady_clock::now();
    {
      Workers items({[next = 0](const Stopping&) mutable { return std::optional(next++); },
                     [&](int number, const Stopping& stopping) {
                       for (int step = 0; step < 100 && number > 0; ++step) {
                         if (stopping) throw Abandoned();
                         ++steps_made;
                         std::this_thread::sleep_for(10ms);
                       }
                       return number;
                     }},
                    workers, 100);
      CHECK(items.take() == 0);
    }
    CHECK(std::chrono::steady_clock::now() - before < 500ms);
    CHECK(steps_made < 100 * workers);
  }
}

}  // namespace
}  // namespace clnet::data
