#include "lib/base/once_per_key.h"

#include <catch2/catch.hpp>
#include <future>
#include <stdexcept>

using namespace clnet;

TEST_CASE("a value is made once for each key") {
  OncePerKey<int> values;
  int made = 0;
  const auto make = [&] { return ++made; };
  CHECK(values.get("a", make) == 1);
  CHECK(values.get("b", make) == 2);
  CHECK(values.get("a", make) == 1);
  CHECK(made == 2);
}

TEST_CASE("a value that could not be made is made by the next who asks") {
  OncePerKey<int> values;
  CHECK_THROWS_AS(values.get("a", []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  CHECK(values.get("a", [] { return 7; }) == 7);
}

TEST_CASE("who wants another key's value does not wait") {
  OncePerKey<int> values;
  std::promise<void> begun, other_is_there;
  auto slow = std::async(std::launch::async, [&] {
    return values.get("slow", [&] {
      begun.set_value();
      other_is_there.get_future().wait();
      return 1;
    });
  });
  begun.get_future().wait();
  CHECK(values.get("other", [] { return 2; }) == 2);
  other_is_there.set_value();
  CHECK(slow.get() == 1);
  CHECK(values.get("slow", [] { return 3; }) == 1);
}
