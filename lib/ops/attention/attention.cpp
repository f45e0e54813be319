// scaled_dot_product_attention().
#include "lib/ops/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/autocast.h"
#include "lib/graph/composition.h"
#include "lib/graph/node.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/gradients_through.h"
#include "lib/ops/random/random.h"
#include "lib/ops/stand_in.h"

namespace clnet {

namespace ops {

namespace {

constexpr auto op_name = "scaled_dot_product_attention";

std::int64_t heads(const Tensor& x) { return x.rank() < 3 ? 1 : x.size(-3); }

Shape replaced(const Tensor& x, std::int64_t rows, std::int64_t columns) { return x.shape().with(-2, rows).with(-1, columns); }

/// The extents before those of heads.
Shape batch(const Tensor& x) {
  const auto& all = x.shape().extents();
  return Shape(std::vector<std::int64_t>(all.begin(), all.end() - std::min<std::ptrdiff_t>(x.rank(), 3)));
}

/// x with so many heads, each of its own so many times in a row, and this batch.
Tensor stretched(const Tensor& x, const Shape& batch, int rank, std::int64_t all_heads) {
  Tensor result = x;
  while (result.rank() < rank) result = unsqueeze(result, 0);
  if (heads(result) != all_heads) result = repeat_interleave(result, all_heads / heads(result), -3);
  auto extents = batch.extents();
  extents.insert(extents.end(), result.shape().end() - std::min(rank, 3), result.shape().end());
  return expand(result, Shape(extents));
}

struct Fitting {
  Tensor q, k, v;
};

/// Inputs of one rank and batch, as many heads of k as of v, and a multiple of them of q.
Fitting fitting(const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto wrong = [&](const std::string& why) {
    return ShapeError(
        fmt::format("{}: q {}, k {}, v {}: {}", op_name, to_string(q.shape()), to_string(k.shape()), to_string(v.shape()), why));
  };
  for (const auto* x : {&q, &k, &v}) {
    require_floating(op_name, x->spec());
    require_same_dtype(op_name, q.spec(), x->spec());
    if (x->rank() < 2) throw wrong("they must be {..., heads, length, width}");
  }
  if (q.size(-1) != k.size(-1)) throw wrong(fmt::format("the widths of q and k, {} and {}, differ", q.size(-1), k.size(-1)));
  if (k.size(-2) != v.size(-2)) throw wrong(fmt::format("k and v have {} and {} keys", k.size(-2), v.size(-2)));
  // One head of q is broadcast to those of k and v; else each of theirs serves so many of q.
  const auto most = std::max(heads(k), heads(v)), all = heads(q) == 1 && most > 1 ? most : heads(q);
  const auto shared = all == heads(q) ? std::lcm(heads(k), heads(v)) : most;
  for (const auto own : {heads(k), heads(v)}) {
    const bool fits = own == 0 ? all == 0 && most == 0 : all == heads(q) ? all % own == 0 : own == 1 || own == most;
    if (!fits) throw wrong(fmt::format("{} heads of q are no multiple of {}", heads(q), own));
  }
  Shape common;
  try {
    common = broadcast(broadcast(batch(q), batch(k), op_name), batch(v), op_name);
  } catch (const ShapeError&) {
    throw wrong("their dimensions before the heads do not broadcast");
  }
  const int rank = std::max({q.rank(), k.rank(), v.rank()});
  return {stretched(q, common, rank, all), stretched(k, common, rank, shared), stretched(v, common, rank, shared)};
}

/// The scores before masks, {..., heads of k, heads of q for each and their queries, keys}.
Shape grouped(const Tensor& q, const Tensor& k) {
  auto shape = q.shape().with(-2, q.size(-2) * (heads(k) == 0 ? 1 : heads(q) / heads(k)));
  return q.rank() < 3 ? shape : shape.with(-3, heads(k));
}

AttentionKind kind_of(const Attention& a) {
  return {.q = a.q.spec(),
          .k = a.k.spec(),
          .v = a.v.spec(),
          .mask = a.mask.defined() ? std::optional(a.mask.spec()) : std::nullopt,
          .causal = a.causal,
          .scale = a.scale,
          .dropout = a.dropout,
          .has_first = a.random.first.defined()};
}

/// The result of attention that is made up of other operations, or the gradient that arrives there: the product's elements in
/// another shape.
class Composed : public Op {
 public:
  Composed(AttentionKind kind, Shape shape, bool backward = false)
      : kind_(std::move(kind)), shape_(std::move(shape)), backward_(backward) {}
  std::string_view name() const override { return "composed_attention"; }
  Precision precision() const override { return Precision::own; }
  Fields fields() const override { return {{"shape", shape_.extents()}, {"backward", backward_}}; }
  Specs infer(const Specs& inputs) const override { return {{shape_, inputs[0].dtype}}; }
  std::optional<Alias> alias(const Specs&, std::size_t) const override { return Alias{}; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    return {apply(std::make_shared<Composed>(kind_, inputs[0].shape(), true), {gradients[0]})};
  }
  std::vector<std::int64_t> lengths(const Specs&) const override { return kind_.lengths(); }
  Tensors at_length(const Specs&, std::int64_t from, std::int64_t to) const override {
    return kind_.at_length(from, to, backward_);
  }

 private:
  const AttentionKind kind_;
  const Shape shape_;
  const bool backward_;
};

}  // namespace

Attention checked_attention(const Tensor& given_q, const Tensor& given_k, const Tensor& given_v,
                            const AttentionOptions& options) {
  require_defined(op_name, {{"q", given_q}, {"k", given_k}, {"v", given_v}});
  const auto [q, k, v] = fitting(given_q, given_k, given_v);
  if (options.scale && !std::isfinite(*options.scale)) throw Error(fmt::format("{}: scale {}", op_name, *options.scale));
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw Error(fmt::format("{}: the probability must be in [0, 1], got {}", op_name, options.dropout));
  if (options.start.defined()) require_start(op_name, options.start);
  const auto& mask = options.mask;
  if (mask.defined()) {
    if (mask.dtype() != Dtype::boolean && mask.dtype() != q.dtype() && (mask.dtype() != Dtype::f32 || q.dtype() == Dtype::f64))
      throw DtypeError(
          fmt::format("{}: the mask must be bool, f32 or {}, got {}", op_name, to_string(q.dtype()), to_string(mask.spec())));
    const auto scores = replaced(q, q.size(-2), k.size(-2));
    if (broadcast(mask.shape(), scores, op_name) != scores)
      throw ShapeError(
          fmt::format("{}: the mask {} does not broadcast to {}", op_name, to_string(mask.shape()), to_string(scores)));
  }
  const auto width = static_cast<double>(q.size(-1));
  Attention result{.q = q,
                   .k = k,
                   .v = v,
                   .mask = mask,
                   .causal = options.causal,
                   .start = options.causal && options.start.defined() ? reshape(options.start, Shape{}) : Tensor{},
                   .scale = options.scale.value_or(width == 0 ? 1 : 1 / std::sqrt(width)),
                   .dropout = options.dropout};
  if (options.dropout > 0 && options.dropout < 1) result.random = next_random_source(replaced(q, q.size(-2), k.size(-2)));
  return result;
}

Tensor attention_weights(const Attention& a) {
  const auto queries = a.queries(), keys = a.keys();
  const auto shape = replaced(a.q, queries, keys);
  // Heads that share keys are rows of one matrix.
  const Tensor rows = reshape(as_f32(a.q), grouped(a.q, a.k));
  Tensor scores = reshape(matmul(rows, as_f32(a.k), {.transpose_b = true}), shape) * a.scale;
  const auto hidden = Tensor::scalar(-std::numeric_limits<double>::infinity(), scores.dtype());
  if (a.causal) {
    Tensor last = unsqueeze(arange(queries), 1);
    // Beyond these limits nothing more is hidden or seen.
    if (a.start.defined())
      last = last + minimum(maximum(cast(a.start, Dtype::i64), -static_cast<double>(queries)), static_cast<double>(keys));
    scores = where(less_equal(arange(keys), last), scores, hidden);
  }
  if ((!a.mask.defined() && !a.start.defined()) || keys == 0) return softmax(scores, -1);
  if (a.mask.defined()) scores = a.mask.dtype() == Dtype::boolean ? where(a.mask, scores, hidden) : scores + as_f32(a.mask);
  // A query that may look at nothing: numbers instead of the infinities, of which softmax and its gradient would make NaN.
  const Tensor nothing = eq(max(stop_gradient(scores), {-1}, true), -std::numeric_limits<double>::infinity());
  return masked_fill(softmax(masked_fill(scores, nothing, 0), -1), nothing, 0);
}

Tensor composed_attention(const Attention& a) {
  auto weights = attention_weights(a);
  if (a.dropout == 1) weights = zeros_like(weights);
  if (a.random.seed.defined()) weights = dropout_by(weights, a.dropout, a.random);
  const Tensor values = as_f32(a.v);
  const auto shape = replaced(a.q, a.queries(), a.v.size(-1));
  const Tensor y = matmul(reshape(weights, grouped(weights, a.k)), values);
  return cast(apply(std::make_shared<Composed>(kind_of(a), shape), {y}), a.q.dtype());
}

namespace {

/// All scores at once where those of a head stay in a cache, or rows are longer than solvers hold them: products and softmax of
/// their own are as fast there. But only as long as those of all heads need little memory, and where they are worth so many
/// kernels: a character that is written looks at few keys, and a step at those that its cache has, not at all its room.
bool is_composed(const Attention& a) {
  constexpr double few_scores = 128 * 128, most_scores = 1 << 26, fewest_scores = 1 << 12;
  constexpr std::int64_t widest = 256;
  const double scores = static_cast<double>(a.queries()) * static_cast<double>(a.keys());
  const Tensor &q = a.q, &v = a.v;
  const bool cannot_stream = q.size(-1) == 0 || v.size(-1) == 0 || q.numel() == 0 || a.dropout == 1;
  const double all_scores = cannot_stream ? 0 : static_cast<double>(q.numel() / q.size(-1) / q.size(-2)) * scores;
  const bool broad = q.size(-1) > widest || v.size(-1) > widest;
  return cannot_stream ||
         (all_scores <= most_scores && (broad || (scores <= few_scores && all_scores > fewest_scores && !a.start.defined())));
}

Tensor composed_or_streaming(const Attention& a) { return is_composed(a) ? composed_attention(a) : streaming_attention(a); }

}  // namespace

Tensors AttentionKind::at_length(std::int64_t from, std::int64_t to, bool gradients) const {
  const auto resized = [&](const Spec& spec, int dim, std::int64_t length) {
    return spec.shape[dim] == length && length == from ? Spec{spec.shape.with(dim, to), spec.dtype} : spec;
  };
  const auto queries = q.shape[-2], keys = k.shape[-2];
  Attention a{.q = stand_in(resized(q, -2, queries)),
              .k = stand_in(resized(k, -2, keys)),
              .v = stand_in(resized(v, -2, keys)),
              .causal = causal,
              .scale = scale,
              .dropout = dropout};
  if (mask) {
    auto spec = resized(*mask, -1, keys);
    // One row for all queries stays one.
    if (spec.shape.rank() > 1 && queries > 1) spec = resized(spec, -2, queries);
    a.mask = stand_in(spec);
  }
  if (dropout > 0) a.random.seed = Tensor::scalar(0, Dtype::i64), a.random.offset = Tensor::scalar(0, Dtype::i64);
  if (has_first) a.random.first = Tensor::scalar(0, Dtype::i64);
  const auto first = Node::next_sequence();
  const auto y = composed_or_streaming(a);
  return gradients ? gradients_through({y}, {stand_in(y.spec())}, {a.q, a.k, a.v}, first) : Tensors{y};
}

}  // namespace ops

Tensor scaled_dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    const AttentionOptions& options) {
  const auto attention =
      ops::checked_attention(autocast_to_product(queries), autocast_to_product(keys), autocast_to_product(values), options);
  // Scores stay f32 between the two products, as they do in the solvers' registers.
  const Autocast as_written(Dtype::f32);
  return composed(ops::composed_or_streaming(attention), [&] {
    const auto& a = attention;
    return Composition{
        ops::op_name, {a.q, a.k, a.v, a.mask, a.start}, {{"causal", a.causal}, {"scale", a.scale}, {"dropout", a.dropout}}, {}};
  });
}

}  // namespace clnet
