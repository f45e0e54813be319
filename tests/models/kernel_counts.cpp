// How many kernels a training step takes, so that a fusion that is lost does not go unnoticed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/statistics.h"

using namespace clnet;

namespace {

/// Kernels of one step of SGD with momentum, with every operation by its reference solver: those are one kernel each on all
/// devices. In f16 it has a loss scale.
std::uint64_t kernels(const std::string& name, const Shape& image, std::int64_t batch, Dtype precision = Dtype::f32) {
  std::vector<std::unique_ptr<exec::ForceSolver>> forced;
  for (const auto& op : exec::ops_with_solvers())
    forced.push_back(std::make_unique<exec::ForceSolver>(op, exec::solver_names(op).back()));
  const auto model = models::make(name, image, 10);
  optim::SGD optimizer{*model, {.learning_rate = 1e-3, .momentum = 0.9}};
  if (precision == Dtype::f16) optimizer.set_loss_scale();
  const Autocast scope(precision);
  std::uint64_t count = 0;
  for (int step = 0; step < 2; ++step) {
    const Tensor x = rand({batch, image[0], image[1], image[2]}).detach();
    const Tensor targets = Tensor::from(std::vector<std::int32_t>(static_cast<std::size_t>(batch), 3), Shape{batch});
    const auto before = exec::statistics();
    optimizer.step(cross_entropy((*model)(x), targets));
    CHECK(exec::statistics().evaluations == before.evaluations + 1);
    count = exec::statistics().kernels - before.kernels;
  }
  return count;
}

}  // namespace

TEST_CASE("kernels of a training step") {
  CHECK(kernels("mlp", {1, 28, 28}, 4) == 13);
  CHECK(kernels("cnn", {1, 28, 28}, 4) == 27);
  // Its 62 parameters are updated by as many launches as the device's room for arguments makes of them.
  const auto room = Device::current().info().max_parameter_size, together = std::min<std::size_t>((room - 48) / 88, 16);
  CHECK(kernels("resnet18", {3, 32, 32}, 2) == 194 + (62 + together - 1) / together);
}

TEST_CASE("kernels of a training step in mixed precision") {
  CHECK(kernels("mlp", {1, 28, 28}, 4, Dtype::bf16) == 22);
  CHECK(kernels("cnn", {1, 28, 28}, 4, Dtype::bf16) == 44);
  CHECK(kernels("mlp", {1, 28, 28}, 4, Dtype::f16) == 29);
  CHECK(kernels("cnn", {1, 28, 28}, 4, Dtype::f16) == 56);
}
