// Which class a model's output names for each label.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "clnet/tensor.h"

namespace clnet::metrics {

/// The dimension of the output that classes are in: the last one, or as PyTorch has it the second one of what lies on pixels;
/// none where the shapes do not fit.
std::optional<int> class_dim(const Tensor& output, const Tensor& labels);

/// Outputs and labels of a batch, in one order.
struct Predictions {
  Tensor predicted, labels;  ///< i64 {count}
  std::int64_t classes;      ///< of the output; 2 where it is one logit
};
/// Throws ShapeError or DtypeError, which begins with `who`, where they do not fit.
Predictions predictions(std::string_view who, const Tensor& output, const Tensor& labels);

/// Scores of outputs as rows.
struct Rows {
  Tensor logits;  ///< f32 {count, classes}
  Tensor labels;  ///< i64 {count}
};
/// As predictions(); one logit is a row of one.
Rows rows(std::string_view who, const Tensor& output, const Tensor& labels);

}  // namespace clnet::metrics
