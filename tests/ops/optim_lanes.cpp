// Optimizers whose work-items update several elements. Devices that prefer vectors have other kernels: CLNET_VECTOR_WIDTH=1 runs
// these there.
#include <catch2/catch.hpp>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/lower/lower.h"
#include "lib/ops/optimize/optimizer_update.h"

using namespace clnet;
using ops::UpdateRule;

namespace {

Tensors updated(UpdateRule rule, const std::vector<ops::UpdateTensors>& tensors, bool gated) {
  const auto number = [](double value) { return Tensor::scalar(value); };
  ops::UpdateScalars scalars{number(0.1), number(0.99), number(1.5), number(0.9), number(0.1)};
  if (gated) scalars.finite = Tensor::from(std::vector<bool>{true});
  return ops::optimizer_update(rule, tensors, {0.01, 0.95, 1e-3, true}, scalars);
}

}  // namespace

TEST_CASE("work-items that update several elements compute what single ones do") {
  const auto units = std::int64_t{Device::current().info().compute_units};
  const auto n = 64 * 4 * units + 3, piece = 64 * units, small = std::int64_t{5};
  manual_seed(3);
  for (const auto rule :
       {UpdateRule::sgd, UpdateRule::sgd_momentum, UpdateRule::adam, UpdateRule::rmsprop, UpdateRule::rmsprop_momentum})
    for (const auto dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
      for (const bool gated : {false, true})
        for (const std::int64_t first : {0, 1}) {
          CAPTURE(static_cast<int>(rule), to_string(dtype), gated, first);
          // The gradient is a part of a memory in which it begins at `first`.
          const auto tensors = [&](std::int64_t count) {
            ops::UpdateTensors result{cast(randn({count}), dtype), cast(randn({count + 4}), dtype), {}};
            for (int k = 0; k < ops::state_count(rule); ++k) result.state.push_back(rand({count}));
            eval({result.parameter, result.gradient});
            eval(result.state);
            result.parameter = result.parameter.detach();
            result.gradient = slice(result.gradient, 0, first, first + count);
            result.gradient.eval();
            result.gradient = result.gradient.detach();
            for (auto& state : result.state) state = state.detach();
            return result;
          };
          const std::vector<ops::UpdateTensors> all{tensors(small), tensors(n)};
          const auto together = updated(rule, all, gated);
          eval(together);
          const auto outputs = 1 + static_cast<std::size_t>(ops::state_count(rule));
          std::size_t wrong = 0, seen = 0;
          for (std::int64_t begin = 0; begin < n; begin += piece) {
            const auto end = std::min(n, begin + piece);
            const auto part = [&](const Tensor& x) { return slice(x, 0, begin, end).detach(); };
            ops::UpdateTensors some{part(all[1].parameter), part(all[1].gradient), {}};
            for (const auto& state : all[1].state) some.state.push_back(part(state));
            const auto apart = updated(rule, {some}, gated);
            for (std::size_t k = 0; k < outputs; ++k) {
              const auto expected = apart[k].to_vector<float>(), got = part(together[outputs + k]).to_vector<float>();
              for (std::size_t i = 0; i < got.size(); ++i, ++seen) wrong += !(got[i] == expected[i]);
            }
          }
          CHECK(seen == outputs * static_cast<std::size_t>(n));
          CHECK(wrong == 0);
          const auto few = updated(rule, {all[0]}, gated);
          for (std::size_t k = 0; k < outputs; ++k) CHECK(few[k].to_vector<float>() == together[k].to_vector<float>());
        }
}

TEST_CASE("how many elements work-items update on a GPU") {
  auto gpu = Device::current().info();
  gpu.type = DeviceType::gpu;
  gpu.prefers_vector_kernels = false;
  gpu.compute_units = 2;
  const auto items = [&](std::int64_t count) {
    const Tensor x = randn({count});
    x.eval();
    const auto wanted = updated(UpdateRule::sgd, {{x.detach(), x.detach(), {}}}, false);
    const auto recording = exec::lower(exec::Subgraph(exec::collect(wanted)), gpu).recording;
    return std::get<exec::Launch>(recording.commands().at(0)).global()[0];
  };
  CHECK(items(511) == 512);  // whole groups of 256
  CHECK(items(5121) == 1536);
}
