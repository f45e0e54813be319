#include "clnet/nn/linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"
#include "clnet/nn/init.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "lib/graph/require.h"
#include "lib/nn/layer.h"
#include "lib/ops/loss/labels.h"

namespace clnet::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options)
    : weight_([&] {
        require_positive("Linear", "in_features", in_features);
        require_positive("Linear", "out_features", out_features);
        return add_parameter("weight", init::kaiming_uniform({out_features, in_features}));
      }()) {
  if (options.bias) bias_ = add_parameter("bias", initial_bias(out_features, weight_));
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight_, value_or_none(bias_)); }

std::string Linear::kind() const {
  const auto& weight = weight_.value();
  return fmt::format("Linear({}, {}{})", weight.size(1), weight.size(0), bias_ ? "" : ", bias=false");
}

Embedding::Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options)
    : options_(options), weight_([&] {
        require_positive("Embedding", "count", count);
        require_positive("Embedding", "width", width);
        const auto values = init::normal({count, width});
        const auto& padding = options.padding_idx;
        if (!padding) return add_parameter("weight", values);
        if (*padding < -count || *padding >= count)
          throw Error(fmt::format("Embedding: padding_idx {} is none of {} rows", *padding, count));
        const auto row = *padding < 0 ? *padding + count : *padding;
        auto numbers = values.to_vector<float>();
        std::fill_n(numbers.begin() + row * width, width, 0.0F);
        return add_parameter("weight", Tensor::from(numbers, {count, width}));
      }()) {}

Tensor Embedding::forward(const Tensor& indices) {
  const Tensor weight = weight_;
  auto rows = embedding(indices, weight, options_.padding_idx);
  ops::require_rows("Embedding", indices, weight.size(0));
  return rows;
}

std::string Embedding::kind() const {
  const Tensor weight = weight_;
  return fmt::format("Embedding({}, {}{})", weight.size(0), weight.size(1),
                     options_.padding_idx ? fmt::format(", padding_idx={}", *options_.padding_idx) : "");
}

Tensor Unflatten::forward(const Tensor& x) {
  require_defined("Unflatten", {{"x", x}});
  const int at = x.shape().normalize(dim_);
  if (x.size(at) != sizes_.numel())
    throw ShapeError(fmt::format("Unflatten: dimension {} of {} is not {}", dim_, to_string(x.spec()), to_string(sizes_)));
  auto extents = x.shape().extents();
  const auto place = extents.erase(extents.begin() + at);
  extents.insert(place, sizes_.begin(), sizes_.end());
  return reshape(x, Shape(extents));
}

std::string Unflatten::kind() const { return fmt::format("Unflatten({}, {})", dim_, to_string(sizes_)); }

}  // namespace clnet::nn
