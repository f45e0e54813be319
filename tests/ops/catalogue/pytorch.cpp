// docs/pytorch.md: each line of its right columns compiles and runs.
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>

#include "clnet/clnet.h"
#include "tests/support/temporary.h"

using namespace clnet;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wshadow"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wunused-comparison"
#endif

TEST_CASE("the lines of docs/pytorch.md run") {
  const clnet::test::Folder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  manual_seed(1);
  const Tensor x = rand({2, 3, 4}), y = randn({2, 3, 4}), mask = x > 0.5, i = Tensor::from(std::vector<std::int64_t>{0, 2, 1});
  const Tensor logits = randn({4, 3}), labels = Tensor::from(std::vector<std::int32_t>{0, 2, 1, 0});
  nn::Sequential model(nn::Linear(4, 4), relu);
  const Device device = Device::current();
  const data::Dataset dataset{
      .name = "table", .sample_shape = {2}, .floats = {1, 2, 3, 4, 5, 6}, .labels = {0, 1, 0}, .classes = 2};
  optim::Adam adam(model, 1e-3);
  const Tensor loss = model(randn({5, 4})).square().mean();
  int lines = 0;
  const auto line = [&](const char* text, const auto& run) {
    INFO(text);
    CHECK_NOTHROW(run());
    model.freeze(false);
    ++lines;
  };
#include "tests/pytorch_lines.inc"
  CHECK(lines > 60);
  std::filesystem::current_path(before);
}

#pragma GCC diagnostic pop
