#include "lib/base/compile_pace.h"

#include <catch2/catch.hpp>

using clnet::CompilePace;
using namespace std::chrono_literals;

TEST_CASE("networks that take long to compile are told once each") {
  CompilePace pace(0ms);
  CHECK(pace.is_news(0, 5));
  CHECK_FALSE(pace.is_news(0, 5));
  CHECK_FALSE(pace.is_news(3, 5));
  CHECK_FALSE(pace.is_news(5, 5));
  // Another one, of as many kernels or not.
  CHECK(pace.is_news(0, 5));
  CHECK(pace.is_news(0, 7));
  CHECK_FALSE(pace.is_news(6, 7));
}

TEST_CASE("networks that are soon compiled are not told of") {
  CompilePace pace(1h);
  CHECK_FALSE(pace.is_news(0, 5));
  CHECK_FALSE(pace.is_long(4, 5));
  CompilePace eager(0ms);
  CHECK_FALSE(eager.is_news(5, 5));
  CHECK(CompilePace::text(46) == "compiling 46 kernels for this network, once");
  CHECK(CompilePace::text(1) == "compiling 1 kernel for this network, once");
}
