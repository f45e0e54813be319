#include "lib/graph/autocast.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "clnet/error.h"
#include "lib/graph/node.h"
#include "lib/graph/number.h"

namespace clnet {

namespace {

class Cast : public Op {
 public:
  explicit Cast(Dtype dtype) : dtype_(dtype) {}
  std::string_view name() const override { return "cast"; }
  Precision precision() const override { return Precision::own; }
  Fields fields() const override { return {{"dtype", std::string(to_string(dtype_))}}; }
  Specs infer(const Specs& inputs) const override { return {{inputs[0].shape, dtype_}}; }
  Expression expr(const Specs&) const override { return {"a"}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    if (!is_floating(inputs[0].dtype()) || !is_floating(dtype_)) return {Tensor{}};
    return {convert(gradients[0], inputs[0].dtype())};
  }

 private:
  Dtype dtype_;
};

/// Whether a scope casts from and to the dtype: f64 stays.
bool is_narrowed(Dtype dtype) { return is_floating(dtype) && dtype != Dtype::f64; }

/// A C++ number beside a tensor fits any dtype.
bool is_number(const Tensor& tensor) {
  const auto& node = *node_of(tensor);
  return !node.op && dynamic_cast<const NumberValue*>(node.values[0].get().get()) != nullptr;
}

}  // namespace

struct AutocastScope {
  Dtype dtype;
  AutocastScope* outer;

  /// The tensor as `wanted`, cast once for all who read it. Nothing is kept alive: a cast that nobody reads any more is made
  /// again.
  Tensor cast(const Tensor& x, Dtype wanted) {
    if (x.dtype() == wanted) return x;
    // What was widened only to be narrowed again.
    const auto& node = *node_of(x);
    if (wanted == dtype && x.dtype() == Dtype::f32 && dynamic_cast<const Cast*>(node.op.get()) && node.slot == 0 &&
        !node.inputs.empty() && node.inputs[0].dtype() == wanted)
      return node.inputs[0];
    if (casts_.size() > most_) forget();
    auto& known = casts_[{node_of(x).get(), output_of(x), wanted}];
    if (auto found = known.lock()) return tensor_of(std::move(found), 0);
    auto made = convert(x, wanted);
    known = node_of(made);
    return made;
  }

 private:
  void forget() {
    std::erase_if(casts_, [](const auto& entry) { return entry.second.expired(); });
    most_ = 2 * casts_.size() + 1000;
  }

  /// A cast holds its input: while it lives, no other node has that address.
  std::map<std::tuple<const Node*, int, Dtype>, std::weak_ptr<Node>> casts_;
  std::size_t most_ = 1000;
};

namespace {
thread_local AutocastScope* innermost = nullptr;
}  // namespace

Autocast::Autocast(Dtype dtype) {
  if (!is_narrowed(dtype)) throw DtypeError(fmt::format("Autocast: needs f16, bf16 or f32, got {}", to_string(dtype)));
  scope_ = std::make_unique<AutocastScope>();
  scope_->dtype = dtype;
  scope_->outer = std::exchange(innermost, scope_.get());
}
Autocast::~Autocast() { innermost = scope_->outer; }

Dtype Autocast::dtype() { return innermost ? innermost->dtype : Dtype::f32; }

bool autocasting() { return innermost && innermost->dtype != Dtype::f32; }

void autocast(const Op& op, Tensors& inputs) {
  const auto precision = op.precision();
  if (precision == Precision::own) return;
  const auto takes_part = [](const Tensor& x) { return is_narrowed(x.dtype()) && !is_number(x); };
  auto wanted = precision == Precision::low ? innermost->dtype : Dtype::f32;
  if (precision == Precision::widest) {
    const Tensor* first = nullptr;
    bool differ = false;
    for (const auto& x : inputs) {
      if (!takes_part(x)) continue;
      if (!first) first = &x;
      differ = differ || x.dtype() != first->dtype();
    }
    if (!differ) return;
  }
  for (auto& x : inputs)
    if (takes_part(x)) x = innermost->cast(x, wanted);
}

Tensor autocast_to_product(const Tensor& x) {
  return autocasting() && x.defined() && is_narrowed(x.dtype()) ? innermost->cast(x, innermost->dtype) : x;
}

Tensor convert(const Tensor& x, Dtype dtype) { return x.dtype() == dtype ? x : apply(std::make_shared<Cast>(dtype), {x}); }

}  // namespace clnet
