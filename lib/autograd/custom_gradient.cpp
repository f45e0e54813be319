#include <fmt/format.h>

#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/node.h"

namespace clnet {

namespace {

constexpr std::string_view function_name = "custom_gradient";

/// A result of the function, as it is; its derivative is that of `stand_in`.
class Result : public Op {
 public:
  explicit Result(Tensor stand_in) : stand_in_(std::move(stand_in)) {}
  std::string_view name() const override { return function_name; }
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  std::optional<Alias> alias(const Specs&, std::size_t) const override { return Alias{}; }
  std::optional<std::span<const Tensor>> differentiated() const override { return std::span(&stand_in_, 1); }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override { return gradients; }

 private:
  Tensor stand_in_;
};

/// What stands in for all results where gradients flow, and is never evaluated. Its inputs are those of the function, `count_`,
/// and then what the function gave.
class CustomGradient : public Op {
 public:
  CustomGradient(std::size_t count, Backward backward) : count_(count), backward_(std::move(backward)) {}
  std::string_view name() const override { return function_name; }
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override { return {inputs.begin() + static_cast<std::ptrdiff_t>(count_), inputs.end()}; }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    auto arrived = gradients;
    for (std::size_t i = 0; i < arrived.size(); ++i)
      if (!arrived[i].defined()) arrived[i] = zeros(outputs[i].shape(), outputs[i].dtype());
    auto flows = backward_(std::span(inputs).first(count_), results(inputs, outputs), arrived);
    if (flows.size() != count_)
      throw Error(fmt::format("{}: the backward function gives {} gradients for {} inputs", name(), flows.size(), count_));
    flows.resize(inputs.size());  // none for what the function is made of
    return flows;
  }

  /// Not by apply_all(): whoever is told of new nodes may evaluate them at once.
  static Tensors stand_ins(const std::shared_ptr<const CustomGradient>& op, const Tensors& inputs) {
    const auto specs = specs_of(inputs);
    const auto node = std::make_shared<Node>(op, inputs, op->infer(specs), specs);
    Tensors all;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) all.push_back(tensor_of(node, static_cast<int>(i)));
    return all;
  }
  Tensors results(const Tensors& inputs, const Tensors& stand_ins) const {
    Tensors all;
    for (std::size_t i = 0; i < stand_ins.size(); ++i)
      all.push_back(apply(std::make_shared<Result>(stand_ins[i]), {inputs[count_ + i]}));
    return all;
  }

 private:
  std::size_t count_;
  Backward backward_;
};

}  // namespace

std::vector<Tensor> custom_gradient(std::vector<Tensor> inputs,
                                    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f, Backward backward) {
  if (!f || !backward) throw Error(fmt::format("{}: a function is missing", function_name));
  const auto require = [](const Tensors& tensors, std::string_view what) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (!tensors[i].defined()) throw Error(fmt::format("{}: {} {} is undefined", function_name, what, i));
  };
  require(inputs, "input");
  const auto count = inputs.size();
  const auto made = f(inputs);
  require(made, "result");
  if (made.empty()) return {};
  inputs.insert(inputs.end(), made.begin(), made.end());
  const auto op = std::make_shared<CustomGradient>(count, std::move(backward));
  return op->results(inputs, CustomGradient::stand_ins(op, inputs));
}

Tensor custom_gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& f,
                       std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& gradient)> backward) {
  if (!f || !backward) throw Error(fmt::format("{}: a function is missing", function_name));
  return custom_gradient(
      std::vector{x}, [&](std::span<const Tensor> inputs) { return std::vector{f(inputs[0])}; },
      [backward = std::move(backward)](std::span<const Tensor> inputs, std::span<const Tensor> results,
                                       std::span<const Tensor> arrived) {
        return std::vector{backward(inputs[0], results[0], arrived[0])};
      })[0];
}

}  // namespace clnet
