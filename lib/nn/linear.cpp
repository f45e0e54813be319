#include "clnet/nn/linear.h"

#include <fmt/format.h>

#include "clnet/nn/init.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "lib/nn/layer.h"

namespace clnet::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias)
    : weight_([&] {
        require_positive("Linear", "in_features", in_features);
        require_positive("Linear", "out_features", out_features);
        return add_parameter("weight", init::kaiming_uniform({out_features, in_features}));
      }()) {
  if (bias) bias_ = add_parameter("bias", initial_bias(out_features, weight_));
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight_, value_or_none(bias_)); }

std::string Linear::kind() const {
  const auto& weight = weight_.value();
  return fmt::format("Linear({}, {}{})", weight.size(1), weight.size(0), bias_ ? "" : ", bias=false");
}

Embedding::Embedding(std::int64_t count, std::int64_t width)
    : weight_([&] {
        require_positive("Embedding", "count", count);
        require_positive("Embedding", "width", width);
        return add_parameter("weight", init::normal({count, width}));
      }()) {}

Tensor Embedding::forward(const Tensor& indices) { return embedding(indices, weight_); }

std::string Embedding::kind() const { return fmt::format("Embedding({}, {})", weight_.value().size(0), weight_.value().size(1)); }

}  // namespace clnet::nn
