#include "lib/autograd/arrivals.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <typeinfo>
#include <utility>

#include "clnet/ops.h"
#include "lib/graph/node.h"
#include "lib/ops/shape/zero_padding.h"

namespace clnet {

namespace {

/// A gradient that an operation sums along a dimension of each of its inputs.
struct Term {
  Tensor made;  ///< the operation's output; the gradient may have another shape
  std::vector<int> dims;

  const Node& node() const { return *node_of(made); }
  std::int64_t elements_read() const {
    return std::accumulate(node().inputs.begin(), node().inputs.end(), std::int64_t{0},
                           [](std::int64_t sum, const Tensor& input) { return sum + input.numel(); });
  }
  /// Whether its inputs take less memory than its output, while many of both live.
  bool is_less_to_keep() const { return elements_read() <= made.numel(); }
};

std::optional<Term> term_of(const Tensor& gradient) {
  const Tensor made = source_of(gradient);
  const auto& node = *node_of(made);
  if (!node.op || node.slot != 0 || node.outputs.size() != 1 || node.values[0].is_asked()) return std::nullopt;
  Term term{made, node.op->fusion(specs_of(node.inputs)).summed_dims};
  if (term.dims.empty() || made.numel() == 0 || term.elements_read() == 0) return std::nullopt;
  return term;
}

/// Whether both may become one operation.
bool alike(const Term& a, const Term& b) {
  const auto &first = *a.node().op, &second = *b.node().op;
  if (typeid(first) != typeid(second) || first.fields() != second.fields() || a.dims != b.dims) return false;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    const auto &x = a.node().inputs[i].spec(), &y = b.node().inputs[i].spec();
    const int dim = a.dims[i];
    if (x.dtype != y.dtype || x.shape.rank() != y.shape.rank() || x.shape.with(dim, 0) != y.shape.with(dim, 0)) return false;
  }
  return true;
}

Tensors inputs_of(const std::vector<Term>& terms, std::size_t index) {
  Tensors inputs;
  for (const auto& term : terms) inputs.push_back(term.node().inputs[index]);
  return inputs;
}

Tensor padded(const ops::ZeroPadding& padding, const Shape& shape) {
  std::vector<std::int64_t> before(static_cast<std::size_t>(shape.rank()), 0), after = before;
  const auto at = static_cast<std::size_t>(padding.dim);
  before[at] = padding.before;
  after[at] = shape[padding.dim] - padding.before - padding.x.size(padding.dim);
  return pad(padding.x, before, after);
}

}  // namespace

Joints::Key Joints::key(const Tensors& parts, int dim) {
  Key result{dim, {}};
  for (const auto& part : parts) result.second.emplace_back(node_of(part).get(), output_of(part));
  return result;
}

Tensor Joints::of(const Tensors& parts, int dim) {
  auto& joint = joints_[key(parts, dim)];
  if (!joint.defined()) joint = concat(parts, dim);
  return joint;
}

void Arrivals::add(const Tensor& gradient, bool may_wait) {
  if (empty()) {
    first_ = gradient;
    first_may_wait_ = may_wait;
    return;
  }
  if (first_.defined()) sort_in(std::exchange(first_, {}), first_may_wait_);
  sort_in(gradient, may_wait);
}

void Arrivals::sort_in(const Tensor& gradient, bool may_wait) {
  // A sum is small beside its inputs, which may live on for a product.
  constexpr std::int64_t small = 8;
  const auto term = may_wait ? term_of(gradient) : std::nullopt;
  const bool waits =
      term && (term->is_less_to_keep() || (term->dims.size() == 1 && small * gradient.numel() <= term->elements_read()));
  if (waits || (may_wait && ops::zero_padding(gradient)))
    waiting_.push_back(gradient);
  else
    add_up(gradient);
}

void Arrivals::add_up(const Tensor& gradient) { sum_ = sum_.defined() ? sum_ + gradient : gradient; }

void Arrivals::join(Joints& joints) {
  join_slices();
  Tensors others;
  for (auto first = waiting_.begin(); first != waiting_.end();) {
    const auto term = term_of(*first);
    if (!term) {
      others.push_back(*first++);
      continue;
    }
    const auto end = std::stable_partition(first, waiting_.end(), [&](const Tensor& gradient) {
      const auto other = term_of(gradient);
      return other && alike(*term, *other);
    });
    // Joins as many as fit into inputs of this size.
    constexpr std::int64_t most = std::int64_t{1} << 26;
    std::vector<Term> terms;
    std::int64_t elements = 0;
    auto last = first;
    for (; last != end; ++last) {
      auto next = *term_of(*last);
      elements += next.elements_read();
      if (elements > most && !terms.empty()) break;
      terms.push_back(std::move(next));
    }
    bool there = true;
    for (std::size_t i = 0; i < term->dims.size(); ++i) there = there && joints.has(inputs_of(terms, i), term->dims[i]);
    if (terms.size() > 1 && (there || term->is_less_to_keep())) {
      const InScope scope(term->node().scope);
      Tensors inputs;
      for (std::size_t i = 0; i < term->dims.size(); ++i) inputs.push_back(joints.of(inputs_of(terms, i), term->dims[i]));
      add_up(reshape(apply(term->node().op, std::move(inputs)), first->shape()));
    } else {
      others.insert(others.end(), first, last);
    }
    first = last;
  }
  waiting_ = std::move(others);
}

void Arrivals::join_slices() {
  struct Slice {
    ops::ZeroPadding padding;
    Tensor gradient;
  };
  std::vector<Slice> slices;
  Tensors others;
  for (const auto& gradient : waiting_) {
    const auto padding = ops::zero_padding(gradient);
    if (padding && (slices.empty() || padding->dim == slices[0].padding.dim))
      slices.push_back({*padding, gradient});
    else
      others.push_back(gradient);
  }
  if (slices.empty()) return;
  waiting_ = std::move(others);
  if (slices.size() == 1) return add_up(slices[0].gradient);
  const auto dim = slices[0].padding.dim;
  const auto shape = slices[0].gradient.shape();
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.padding.before < b.padding.before; });
  Tensors parts;
  std::vector<ops::ZeroPadding> overlapping;
  std::int64_t end = 0;
  const auto fill_to = [&](std::int64_t place) {
    if (place > end) parts.push_back(zeros(shape.with(dim, place - end), slices[0].gradient.dtype()));
  };
  for (const auto& [padding, gradient] : slices) {
    if (padding.before < end) {
      overlapping.push_back(padding);
      continue;
    }
    fill_to(padding.before);
    parts.push_back(padding.x);
    end = padding.before + padding.x.size(dim);
  }
  fill_to(shape[dim]);
  add_up(concat(parts, dim));
  // Made again, so that one after the other is computed and added.
  for (const auto& padding : overlapping) add_up(padded(padding, shape));
}

Tensor Arrivals::total(Joints& joints) {
  if (first_.defined()) return first_;
  join(joints);
  for (const auto& gradient : waiting_) add_up(gradient);
  waiting_.clear();
  return sum_;
}

}  // namespace clnet
