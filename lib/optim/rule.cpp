#include "clnet/optim/rule.h"

#include "clnet/ops.h"

namespace clnet::optim {

Rule::~Rule() = default;

std::optional<double> Rule::momentum() const { return std::nullopt; }

std::vector<Rule::State> Rule::states(const Shape&) const { return {}; }

std::vector<Rule::Result> Rule::update_all(const std::vector<Item>& items, const Step& step) const {
  std::vector<Result> results;
  for (const auto& [parameter, gradient, states] : items) {
    if (parameter.numel() == 0) {
      results.push_back({parameter, states});
      continue;
    }
    auto result = update(cast(parameter, Dtype::f32), cast(gradient, Dtype::f32), states, step);
    if (result.parameter.defined() && result.parameter.dtype() == Dtype::f32)
      result.parameter = cast(result.parameter, parameter.dtype());
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace clnet::optim
