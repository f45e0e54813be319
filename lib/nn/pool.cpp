#include "clnet/nn/pool.h"

#include <fmt/format.h>

#include "lib/nn/layer.h"

namespace clnet::nn {

std::string MaxPool2d::kind() const {
  return fmt::format("MaxPool2d(kernel_size={}, stride={}, padding={})", text(kernel_size_),
                     text(options_.stride.value_or(kernel_size_)), text(options_.padding));
}

std::string AvgPool2d::kind() const {
  return fmt::format("AvgPool2d(kernel_size={}, stride={}, padding={})", text(kernel_size_),
                     text(options_.stride.value_or(kernel_size_)), text(options_.padding));
}

std::string AdaptiveAvgPool2d::kind() const { return fmt::format("AdaptiveAvgPool2d({})", text(output_size_)); }
std::string AdaptiveMaxPool2d::kind() const { return fmt::format("AdaptiveMaxPool2d({})", text(output_size_)); }

}  // namespace clnet::nn
