#include "lib/ops/shape/unstack.h"

#include <memory>
#include <optional>

#include "clnet/ops.h"

namespace clnet::ops {

namespace {

class Unstack : public Op {
 public:
  std::string_view name() const override { return "unstack"; }
  Specs infer(const Specs& inputs) const override {
    const auto& x = inputs[0];
    return Specs(static_cast<std::size_t>(x.shape[0]), Spec{{x.shape[1], x.shape[2]}, x.dtype});
  }
  Tensors vjp(const Tensors&, const Tensors& outputs, const Tensors& gradients) const override {
    Tensors all;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      all.push_back(gradients[i].defined() ? gradients[i] : zeros_like(outputs[i]));
    return {stack(all)};
  }
  std::optional<Alias> alias(const Specs& inputs, std::size_t output) const override {
    const auto& x = inputs[0].shape;
    if (x.numel() == 0) return std::nullopt;
    return Alias{0, static_cast<std::int64_t>(output) * x[1] * x[2]};
  }
  void lower(exec::Recorder&) const override {}  // there are no elements
};

}  // namespace

Tensors unstack(const Tensor& sequence) { return apply_all(std::make_shared<Unstack>(), {sequence}); }

}  // namespace clnet::ops
