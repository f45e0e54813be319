#include "clnet/optim/clip.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/collect/copy.h"

namespace clnet::optim {

std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& gradients, double max_norm, double p) {
  if (!(max_norm > 0)) throw Error(fmt::format("clip_by_norm: the norm must be above 0, not {}", max_norm));
  const Tensor scale = minimum(max_norm / (global_norm(gradients, p) + 1e-6), 1.0);
  exec::DeviceFinder finder;
  const auto home = finder.find(scale);
  std::vector<Tensor> result;
  for (const auto& gradient : gradients) {
    const Tensor here = exec::moved(scale, home, home ? finder.find(gradient) : nullptr);
    result.push_back(cast(cast(gradient, here.dtype()) * here, gradient.dtype()));
  }
  return result;
}

std::vector<Tensor> clip_by_value(const std::vector<Tensor>& gradients, double max_value) {
  if (!(max_value > 0)) throw Error(fmt::format("clip_by_value: the value must be above 0, not {}", max_value));
  std::vector<Tensor> result;
  for (const auto& gradient : gradients) result.push_back(clamp(gradient, -max_value, max_value));
  return result;
}

}  // namespace clnet::optim
