// Sequences whose length is another one in each batch: a plan for each length, made once, and programs that serve all.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/cl/context.h"
#include "lib/cl/opencl.h"
#include "lib/exec/statistics.h"

using namespace clnet;

namespace {

struct Made {
  std::uint64_t plans, programs;
};

Made made() {
  auto& programs = context_of(Device::current())->programs();
  return {exec::statistics().plans_made, programs.built() + programs.loaded()};
}

Tensor input(const Shape& shape) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), 0.5F), shape);
}

/// Two rounds of steps over all lengths. On a GPU a product whose sum is much longer may have another configuration. `others` are
/// programs that only some of the lengths need on CPUs.
void check_rounds(const std::vector<std::int64_t>& lengths, const std::function<void(std::int64_t length)>& step,
                  std::uint64_t others = 0) {
  step(lengths.front());
  const auto first = made();
  for (const auto length : lengths) step(length);
  const auto second = made();
  // Only lengths make plans.
  CHECK(second.plans - first.plans == lengths.size() - 1);
  CHECK(second.programs <= first.programs + (Device::current().info().prefers_vector_kernels ? others : 3));
  for (const auto length : lengths) step(length);
  CHECK(made().plans == second.plans);
  CHECK(made().programs == second.programs);
}

/// A context of its own is the default while it lives, which has no programs yet.
class Fresh {
 public:
  Fresh() {
    const cl::Device device(opencl::device_id(before_), true);
    context_ = cl::Context(device);
    queue_ = cl::CommandQueue(context_, device);
    Device::set_default(opencl::wrap(context_(), device(), queue_()));
  }
  ~Fresh() { Device::set_default(before_); }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

 private:
  Device before_ = Device::current();
  cl::Context context_;
  cl::CommandQueue queue_;
};

/// Lengths 1 to 64 in a mixed order, from a long one on: at most two sets of programs, one for few rows and one for many, of
/// which the shortest bring the second.
void check_two_sets(const std::function<void(std::int64_t length)>& step) {
  REQUIRE(made().programs == 0);
  std::vector<std::int64_t> lengths;
  // All of them where tiles follow the rows, which is on CPUs.
  const std::int64_t count = Device::current().info().prefers_vector_kernels ? 64 : 16;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(1 + (i * 37 + 40) % 64);
  step(lengths.front());
  const auto set = made().programs;
  for (const auto length : {1, 2, 3}) step(length);
  const auto both = made().programs;
  for (const auto length : lengths) step(length);
  const auto all = made().programs;
  INFO(set << " programs for one length, " << both << " with the shortest, " << all << " for all");
  CHECK(set > 0);
  CHECK(both <= 2 * set);
  CHECK(all <= 2 * set);
}

/// Whatever the first of lengths 1 to 64 is, in a context of its own: with its plan all programs are known that the others ask
/// for, and they are at most twice those of a long one. `late` are those that are not known where the first is 1. On GPUs it
/// depends on how many elements there are, too, whether elementwise kernels take several at once.
void check_known(const std::function<std::function<void(std::int64_t length)>()>& make, std::uint64_t late = 0) {
  std::uint64_t long_set = 0;
  for (const std::int64_t first : {41, 64, 17, 3, 1}) {
    const Fresh fresh;
    const auto step = make();
    auto& programs = context_of(Device::current())->programs();
    step(first);
    const auto set = made().programs, known = set + programs.foreseen().size();
    if (first == 41) long_set = set;
    const std::uint64_t others = Device::current().info().prefers_vector_kernels ? 0 : 2;
    for (std::int64_t length = 1; length <= 64; ++length) step(length);
    INFO("length " << first << ": " << set << " programs, " << known << " known, " << made().programs << " for all, of which "
                   << programs.unforeseen() - set << " were not known");
    CHECK(set > 0);
    CHECK(programs.unforeseen() <= set + others + (first == 1 ? late : 0));
    CHECK(known <= 2 * long_set);
  }
}

struct Network : nn::Module {
  nn::LSTM lstm{8, 16, 2};
  nn::Linear head{16, 5};
  Network() {
    add("lstm", lstm);
    add("head", head);
  }
  Tensor forward(const Tensor& x) override { return head(lstm(x)); }
};

/// h = tanh(x_t W + h U + b)
struct Steps : nn::Module {
  static constexpr std::int64_t width = 32;
  nn::Parameter w = add_parameter("w", nn::init::xavier_uniform({width, width}));
  nn::Parameter u = add_parameter("u", nn::init::xavier_uniform({width, width}));
  nn::Parameter b = add_parameter("b", input({width}));
  Tensor forward(const Tensor& x) override {
    Tensor h = zeros({x.size(1), width});
    for (std::int64_t t = 0; t < x.size(0); ++t) h = tanh(matmul(squeeze(slice(x, 0, t, t + 1), 0), w) + matmul(h, u) + b);
    return h;
  }
};

}  // namespace

TEST_CASE("an LSTM's training step with thirty lengths") {
  Network network;
  optim::Adam adam{network, {.learning_rate = 1e-3}};
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 30; ++i) lengths.push_back(5 + 10 * (i * 11 % 30));
  check_rounds(lengths, [&](std::int64_t length) {
    const auto targets = Tensor::from(std::vector<std::int32_t>(static_cast<std::size_t>(8 * length), 3), Shape{8 * length});
    (void)adam.step(cross_entropy(flatten(network(input({length, 8, 8})), 0, 1), targets)).item<float>();
  });
}

TEST_CASE("a training step of a recurrence that is written by hand with ten lengths") {
  Steps steps;
  optim::Adam adam{steps, {.learning_rate = 1e-3}};
  // Of three steps too few products share a weight for it to be packed once for all.
  const std::uint64_t unpacked = 1;
  check_rounds(
      {12, 3, 7, 5, 16, 9, 4, 11, 8, 6},
      [&](std::int64_t length) {
        (void)adam.step(sum(steps(input({length, 8, Steps::width})))).item<float>();
      },
      unpacked);
}

TEST_CASE("a recurrence that is written by hand, whose gradients are sums of the steps', with lengths 1 to 64") {
  const Fresh fresh;
  Steps steps;
  optim::Adam adam{steps, {.learning_rate = 1e-3}};
  const auto step = [&](std::int64_t length) {
    // What a step multiplies with a weight is larger than the weight: its gradient is not kept for one product of all.
    (void)adam.step(sum(steps(input({length, 64, Steps::width})))).item<float>();
  };
  // Every number of sums in a piece.
  for (const auto length : {1, 2, 3, 4, 5, 6, 8, 32}) step(length);
  const auto few = made().programs;
  for (std::int64_t length = 1; length <= 64; ++length) step(length);
  INFO(few << " programs for few lengths, " << made().programs << " for all");
  CHECK(made().programs == few);
}

TEST_CASE("attention, forward and in training, with lengths 1 to 64") {
  const Fresh fresh;
  nn::TransformerEncoderLayer layer{64, 4, {.dim_feedforward = 128, .dropout = 0, .batch_first = true}};
  SECTION("forward") {
    layer.inference();
    check_two_sets([&](std::int64_t length) { layer(input({4, length, 64})).eval(); });
  }
  SECTION("training") {
    optim::Adam adam{layer, {.learning_rate = 1e-3}};
    check_two_sets([&](std::int64_t length) { (void)adam.step(mean(square(layer(input({4, length, 64}))))).item<float>(); });
  }
}

TEST_CASE("attention with lengths 1 to 64: its programs are known after the first plan") {
  SECTION("forward") {
    check_known([] {
      auto layer = std::make_shared<nn::TransformerEncoderLayer>(
          64, 4, nn::TransformerLayerOptions{.dim_feedforward = 128, .dropout = 0, .batch_first = true});
      layer->inference();
      return [layer](std::int64_t length) { (*layer)(input({4, length, 64})).eval(); };
    });
  }
  SECTION("training") {
    check_known([] {
      auto layer = std::make_shared<nn::TransformerEncoderLayer>(
          64, 4, nn::TransformerLayerOptions{.dim_feedforward = 128, .dropout = 0, .batch_first = true});
      auto adam = std::make_shared<optim::Adam>(*layer, optim::AdamOptions{.learning_rate = 1e-3});
      return [layer, adam](std::int64_t length) {
        (void)adam->step(mean(square((*layer)(input({4, length, 64}))))).item<float>();
      };
    });
  }
}

TEST_CASE("a recurrence in training with lengths 1 to 64: its programs are known after the first plan") {
  // The gradient of the weight for states is of one step's states alone, without the additions of several.
  constexpr std::uint64_t of_one_step = 1;
  check_known(
      [] {
        auto lstm = std::make_shared<nn::LSTM>(32, 48, 2);
        auto adam = std::make_shared<optim::Adam>(*lstm, optim::AdamOptions{.learning_rate = 1e-3});
        return [lstm, adam](std::int64_t length) { (void)adam->step(mean((*lstm)(input({length, 4, 32})))).item<float>(); };
      },
      of_one_step);
}

TEST_CASE("decoding by concatenation up to length 64: its programs are known after the first plan") {
  check_known([] {
    auto layer = std::make_shared<nn::TransformerEncoderLayer>(
        64, 4, nn::TransformerLayerOptions{.dim_feedforward = 128, .batch_first = true});
    layer->inference();
    return [layer](std::int64_t length) {
      const auto y = (*layer)(input({1, length, 64}));
      concat({input({1, length, 64}), slice(y, 1, length - 1, length)}, 1).eval();
    };
  });
}

TEST_CASE("a recurrence in training with lengths 1 to 64") {
  const Fresh fresh;
  nn::LSTM lstm(32, 48, 2);
  optim::Adam adam{lstm, {.learning_rate = 1e-3}};
  check_two_sets([&](std::int64_t length) { (void)adam.step(mean(lstm(input({length, 4, 32})))).item<float>(); });
}

TEST_CASE("decoding by concatenation up to length 64") {
  const Fresh fresh;
  nn::TransformerEncoderLayer layer{64, 4, {.dim_feedforward = 128, .batch_first = true}};
  layer.inference();
  const auto step = [&](std::int64_t length) {
    const auto y = layer(input({1, length, 64}));
    concat({input({1, length, 64}), slice(y, 1, length - 1, length)}, 1).eval();
  };
  check_two_sets(step);
}
