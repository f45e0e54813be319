// docs/reference/pytorch.md: each line of its right columns compiles, and its tensors can be computed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "clnet/clnet.h"
#include "tests/support/temporary.h"

using namespace clnet;

namespace {

/// `read, x.abs(), x.shape()` computes the tensors.
struct ReadTensors {};
const ReadTensors& operator,(const ReadTensors& read, const Tensor& x) {
  x.to_vector<double>();
  return read;
}
const ReadTensors& operator,(const ReadTensors& read, const std::vector<Tensor>& tensors) {
  for (const auto& x : tensors) x.to_vector<double>();
  return read;
}
template <class T>
const ReadTensors& operator,(const ReadTensors& read, const T&) {
  return read;
}

/// The working folder for as long as it lives.
class Inside {
 public:
  explicit Inside(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~Inside() { std::filesystem::current_path(before_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::filesystem::path before_;
};

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wshadow"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wunused-comparison"
#endif

TEST_CASE("the lines of docs/reference/pytorch.md run") {
  const clnet::test::Folder folder;
  const Inside inside(folder.path());
  const ReadTensors read;
  manual_seed(1);
  const Tensor y = rand({2, 3, 4}) + 0.1, mask = y > 0.5, i = Tensor::from(std::vector<std::int64_t>{0, 2, 1});
  Tensor x = rand({2, 3, 4}) + 0.1;
  const Tensor logits = randn({4, 3}), labels = Tensor::from(std::vector<std::int32_t>{0, 2, 1, 0});
  nn::Sequential model(nn::Linear(4, 4), relu);
  const Device device = Device::current();
  data::ArrayDataset dataset;
  dataset.sample_shape = {2};
  dataset.floats = {1, 2, 3, 4, 5, 6};
  dataset.labels = {0, 1, 0};
  dataset.classes = 2;
  optim::Adam adam(model, 1e-3);
  const Tensor loss = model(randn({5, 4})).square().mean();
  int lines = 0;
  const auto line = [&](const char* text, auto run) {
    INFO(text);
    // What a line prints is for nobody.
    std::ostringstream printed;
    auto* const terminal = std::cout.rdbuf(printed.rdbuf());
    CHECK_NOTHROW(run());
    std::cout.rdbuf(terminal);
    model.freeze(false);
    ++lines;
  };
#include "tests/pytorch_lines.inc"
  CHECK(lines > 60);
}

#pragma GCC diagnostic pop
