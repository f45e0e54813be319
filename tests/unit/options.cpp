// Options of evaluations: scopes of a thread, and what plans depend on.
#include "lib/exec/options/options.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "clnet/error.h"

using namespace clnet::exec;
using clnet::Error;

TEST_CASE("scopes change one option each, and end in turn") {
  const auto& outside = Options::now();
  {
    const NoFusion none;
    CHECK_FALSE(Options::now().fuses);
    CHECK(Options::now().shares == outside.shares);
    const NoMemorySharing apart;
    CHECK_FALSE(Options::now().fuses);
    CHECK_FALSE(Options::now().shares);
    const WithLaunchBatches batches(LaunchBatchMode::force);
    CHECK(Options::now().launch_batches == LaunchBatchMode::force);
  }
  CHECK(&Options::now() == &outside);
}

TEST_CASE("of several solvers that are forced the innermost counts") {
  const ForceSolver outer("conv2d", "direct"), other("matmul", "plain");
  CHECK(Options::now().solver("conv2d")->choice.text() == "direct");
  {
    const ForceSolver inner("conv2d", Choice::parse("cpu{lanes=8}"));
    CHECK(Options::now().solver("conv2d")->choice.text() == "cpu{lanes=8}");
    CHECK(Options::now().solver("conv2d")->listed);
    CHECK(Options::now().solver("matmul")->choice.text() == "plain");
  }
  CHECK(Options::now().solver("conv2d")->choice.text() == "direct");
  CHECK(Options::now().solver("softmax") == nullptr);
}

TEST_CASE("scopes may end in any order") {
  const auto& outside = Options::now();
  auto first = std::make_unique<ForceSolver>("conv2d", "direct");
  auto second = std::make_unique<ForceSolver>("matmul", "plain");
  auto third = std::make_unique<NoFusion>();
  second.reset();
  CHECK_FALSE(Options::now().fuses);
  first.reset();
  CHECK_FALSE(Options::now().fuses);
  third.reset();
  CHECK(&Options::now() == &outside);
}

TEST_CASE("a choice that is none changes nothing") {
  const auto& outside = Options::now();
  CHECK_THROWS_AS(ForceSolver("conv2d", "cpu{lanes"), Error);
  CHECK(&Options::now() == &outside);
}

TEST_CASE("options are a thread's own") {
  const WithLaunchBatches batches(LaunchBatchMode::off);
  std::optional<LaunchBatchMode> there = LaunchBatchMode::force;
  std::thread([&] { there = Options::now().launch_batches; }).join();
  CHECK_FALSE(there.has_value());
  CHECK(Options::now().launch_batches == LaunchBatchMode::off);
}

TEST_CASE("what plans depend on is in the key, and nothing else") {
  const OptionsScope none_but_these({});
  const auto key = Options::now().key();
  {
    const NoFusion none;
    CHECK(Options::now().key() != key);
  }
  {
    const NoMemorySharing apart;
    CHECK(Options::now().key() != key);
  }
  {
    const ForceSolver forced("conv2d", "direct");
    CHECK(Options::now().key() != key);
  }
  {
    const ForceSolver listed("conv2d", Choice::parse("direct"));
    const auto exact = Options::now().key();
    CHECK(exact != key);
    const ForceSolver forced("conv2d", "direct");
    CHECK(Options::now().key() != exact);
  }
  {
    const WithLaunchBatches batches(LaunchBatchMode::off);
    CHECK(Options::now().key() == key);
  }
}
