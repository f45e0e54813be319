#include "clnet/nn/image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace clnet::nn {

Upsample::Upsample(InterpolateOptions options) : options_(std::move(options)) {}

Tensor Upsample::forward(const Tensor& x) { return interpolate(x, options_); }

std::string Upsample::kind() const {
  return options_.size.empty() ? fmt::format("Upsample(scale_factor=[{}])", fmt::join(options_.scale_factor, ", "))
                               : fmt::format("Upsample(size=[{}])", fmt::join(options_.size, ", "));
}

}  // namespace clnet::nn
