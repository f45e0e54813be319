#include "lib/metrics/classes.h"

#include <fmt/format.h>

#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"

namespace clnet::metrics {

namespace {

[[noreturn]] void fail_as_unfitting(std::string_view who, const Tensor& output, const Tensor& labels) {
  throw ShapeError(fmt::format("{}: the output is {} for labels {}, expected a dimension of classes more, or their shape", who,
                               to_string(output.spec()), to_string(labels.spec())));
}

bool is_one_logit(const Tensor& output, const Tensor& labels) {
  if (output.shape() == labels.shape()) return true;
  const auto dim = class_dim(output, labels);
  return dim && output.size(*dim) == 1;
}

Tensor as_classes(std::string_view who, const Tensor& labels, bool binary) {
  if (is_floating(labels.dtype()) && !binary)
    throw DtypeError(fmt::format("{}: the labels are {}, expected integers", who, to_string(labels.spec())));
  return cast(reshape(labels, {labels.numel()}), Dtype::i64);
}

void require_scores(std::string_view who, const Tensor& output) {
  if (!is_floating(output.dtype()))
    throw DtypeError(fmt::format("{}: the output is {}, expected a floating dtype", who, to_string(output.spec())));
}

}  // namespace

std::optional<int> class_dim(const Tensor& output, const Tensor& labels) {
  if (output.rank() != labels.rank() + 1) return std::nullopt;
  const auto fits = [&](int dim) {
    auto at = labels.shape().begin();
    for (int d = 0; d < output.rank(); ++d)
      if (d != dim && output.size(d) != *at++) return false;
    return true;
  };
  const int last = output.rank() - 1, first = labels.rank() > 2 ? 1 : last;
  for (int dim : {first, last, 1})
    if (fits(dim)) return dim;
  return std::nullopt;
}

Predictions predictions(std::string_view who, const Tensor& output, const Tensor& labels) {
  require_scores(who, output);
  const bool binary = is_one_logit(output, labels);
  const auto wanted = as_classes(who, labels, binary);
  if (binary) return {cast(greater(reshape(output, {output.numel()}), 0.0), Dtype::i64), wanted, 2};
  const auto dim = class_dim(output, labels);
  if (!dim) fail_as_unfitting(who, output, labels);
  return {reshape(argmax(output, *dim), {labels.numel()}), wanted, output.size(*dim)};
}

Rows rows(std::string_view who, const Tensor& output, const Tensor& labels) {
  require_scores(who, output);
  const bool binary = is_one_logit(output, labels);
  const auto wanted = as_classes(who, labels, binary);
  const auto wide = cast(output, Dtype::f32);
  if (binary) return {reshape(wide, {labels.numel(), 1}), wanted};
  const auto dim = class_dim(output, labels);
  if (!dim) fail_as_unfitting(who, output, labels);
  std::vector<int> order;
  for (int d = 0; d < output.rank(); ++d)
    if (d != *dim) order.push_back(d);
  order.push_back(*dim);
  const auto last = *dim == output.rank() - 1 ? wide : permute(wide, order);
  return {reshape(last, {labels.numel(), output.size(*dim)}), wanted};
}

}  // namespace clnet::metrics
