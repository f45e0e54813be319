#include "lib/ops/loss/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <string>
#include <vector>

#include "clnet/error.h"
#include "lib/exec/record/work.h"

namespace clnet::ops {

namespace {

/// "sample 3", and where in it the label lies.
std::string place(const Shape& shape, std::int64_t index) {
  if (shape.rank() == 0) return "the sample";
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
  for (int d = shape.rank(); d-- > 0; index /= shape[d]) at[static_cast<std::size_t>(d)] = index % shape[d];
  if (at.size() == 1) return fmt::format("sample {}", at[0]);
  return fmt::format("sample {} at [{}]", at[0], fmt::join(at.begin() + 1, at.end(), ", "));
}

template <class T>
void check(std::string_view op, const Tensor& labels, const std::byte* bytes, std::int64_t classes,
           std::optional<std::int64_t> ignored) {
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    T label;
    std::memcpy(&label, bytes + static_cast<std::size_t>(i) * sizeof label, sizeof label);
    if ((label >= 0 && label < classes) || (ignored && label == *ignored)) continue;
    throw Error(fmt::format("{}: label {} of {} is no class: there are {}, from 0{}", op, label, place(labels.shape(), i),
                            classes, ignored ? fmt::format(", and ignore_index {}", *ignored) : ""));
  }
}

}  // namespace

void require_classes(std::string_view op, const Tensor& labels, std::int64_t classes, std::optional<std::int64_t> ignored) {
  const auto [root, offset] = root_of(labels);
  const auto value = exec::value_of(root);
  const auto* host = dynamic_cast<const HostValue*>(value.get());
  if (!host) return;
  const auto* bytes = host->bytes.data() + static_cast<std::size_t>(offset) * size_of(labels.dtype());
  if (labels.dtype() == Dtype::i32)
    check<std::int32_t>(op, labels, bytes, classes, ignored);
  else
    check<std::int64_t>(op, labels, bytes, classes, ignored);
}

}  // namespace clnet::ops
