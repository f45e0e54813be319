// Attention as one operation, which goes over the keys piece by piece: no matrix of all scores is ever in memory.
#include <cmath>
#include <numeric>

#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/attention/attention.h"
#include "lib/ops/attention/attention_solvers.h"
#include "lib/ops/random/random.h"

namespace clnet::ops {

namespace {

struct Options {
  bool causal = false, masked = false, started = false;
  double scale = 1, dropout = 0;
  bool has_first = false;  ///< the random source has

  /// The number of inputs tells the rest.
  Fields fields() const {
    return {{"causal", causal}, {"masked", masked}, {"started", started}, {"scale", scale}, {"dropout", dropout}};
  }
  std::size_t extras() const { return (masked ? 1 : 0) + (started ? 1 : 0) + (dropout > 0 ? 2 : 0) + (has_first ? 1 : 0); }
  /// With a mask or a start the time depends on their values.
  TuningHints tuning(std::size_t inputs) const {
    TuningHints hints{.list = "attention", .measured = extras() == 0, .batches = std::vector<std::size_t>(inputs)};
    std::iota(hints.batches.begin(), hints.batches.end(), 0);
    return hints;
  }
  /// What follows q, k, v and others among an operation's inputs.
  Attention attention(const Tensors& inputs) const {
    Attention a{.q = inputs[0], .k = inputs[1], .v = inputs[2], .causal = causal, .scale = scale, .dropout = dropout};
    const auto end = inputs.size();
    const auto source = end - (has_first ? 3 : 2);
    if (dropout > 0) a.random = {inputs[source], inputs[source + 1], has_first ? inputs[source + 2] : Tensor{}};
    if (masked) a.mask = inputs[end - extras()];
    if (started) a.start = inputs[end - extras() + (masked ? 1 : 0)];
    return a;
  }
  std::vector<std::int64_t> lengths(const Specs& inputs) const { return {inputs[0].shape[2], inputs[1].shape[2]}; }
  /// Nothing where the place among the keys is a value's, as such a cache has its room for good.
  Tensors at_length(const Specs& inputs, std::int64_t from, std::int64_t to, bool gradients) const {
    if (started) return {};
    const AttentionKind kind{.q = inputs[0],
                             .k = inputs[1],
                             .v = inputs[2],
                             .mask = masked ? std::optional(inputs[inputs.size() - extras()]) : std::nullopt,
                             .causal = causal,
                             .scale = scale,
                             .dropout = dropout,
                             .has_first = has_first};
    return kind.at_length(from, to, gradients);
  }
  /// Records the problem, and foresees it with as many queries as others have.
  static void lower(const AttentionProblem& p, exec::Recorder& recorder) {
    attention_solvers().lower(p, recorder.device(), recorder);
    recorder.foresee({}, p.queries, [&](std::int64_t queries) {
      auto other = p;
      other.queries = queries;
      if (p.keys == p.queries) other.keys = queries;
      attention_solvers().lower(other, recorder.device(), recorder);
    });
  }
  AttentionProblem problem(const exec::Recorder& recorder) const {
    const auto shape = [&](std::size_t input) -> const Shape& { return recorder.spec(recorder.input(input)).shape; };
    const auto &q = shape(0), &k = shape(1), &v = shape(2);
    AttentionProblem p{.q = recorder.input(0), .k = recorder.input(1), .v = recorder.input(2)};
    p.batch = q[0];
    p.heads = q[1];
    p.group = q[1] / k[1];
    p.queries = q[2];
    p.keys = k[2];
    p.width = q[3];
    p.value_width = v[3];
    p.causal = causal;
    p.scale = scale;
    p.dropout = dropout;
    const auto end = recorder.input_count();
    if (dropout > 0) {
      const auto source = end - (has_first ? 3 : 2);
      p.seed = recorder.input(source);
      p.place = recorder.input(source + 1);
      p.seed_known = recorder.host_scalar(source) && recorder.host_scalar(source + 1);
      if (has_first) p.first_weight = recorder.input(end - 1);
      p.seed_known = p.seed_known && (!has_first || recorder.host_scalar(end - 1));
    }
    if (started) {
      const auto at = end - extras() + (masked ? 1 : 0);
      p.start = recorder.input(at);
      p.start_known = recorder.host_scalar(at);
    }
    if (masked) {
      p.mask = recorder.input(end - extras());
      const auto& m = shape(end - extras());
      p.mask_key = m[3] == 1 ? 0 : 1;
      p.mask_query = m[2] == 1 ? 0 : m[3];
      p.mask_head = m[1] == 1 ? 0 : m[2] * m[3];
      p.mask_batch = m[0] == 1 ? 0 : m[1] * m[2] * m[3];
    }
    return p;
  }
};

Tensor transposed_product(const Tensor& a, const Tensor& b) { return matmul(a, b, {.transpose_a = true}); }
Tensor product_of_rows(const Tensor& a, const Tensor& b) { return matmul(a, b, {.transpose_b = true}); }
Tensor row_sums(const Tensor& x) { return sum(x, {-1}, true); }

/// Everything that gradients of attention are made of, in f32, the heads that share keys as rows of one matrix.
struct GradientInputs {
  Tensor q, k, v, g;
  Tensor weights;  ///< P
  Tensor mask;     ///< by what weights are multiplied; undefined: nothing is dropped
  Tensor towards;  ///< the gradient of P: g v^T, where kept
  Tensor delta;    ///< its mean over each row, weighted by P
  Shape all;       ///< of the weights, with all of q's heads

  GradientInputs(const Attention& a, const Tensor& gradient) : all(a.q.shape().with(-1, a.keys())) {
    const auto joined = [&](const Tensor& x) {
      return reshape(as_f32(x), Shape{x.size(0), a.k.size(1), x.size(1) / a.k.size(1) * x.size(2), x.size(3)});
    };
    q = joined(a.q);
    k = as_f32(a.k);
    v = as_f32(a.v);
    g = joined(gradient);
    const auto by_head = attention_weights(a);
    weights = joined(by_head);
    if (a.random.seed.defined()) mask = joined(dropout_by(ones(all, weights.dtype()), a.dropout, a.random));
    towards = masked(product_of_rows(g, v));
    delta = row_sums(weights * towards);
  }
  Tensor masked(const Tensor& x) const { return mask.defined() ? x * mask : x; }
  /// The gradient of scores from that of weights.
  Tensor of_scores(const Tensor& of_weights) const { return weights * (of_weights - row_sums(weights * of_weights)); }
};

Tensor as(const Tensor& x, const Tensor& like) { return cast(reshape(x, like.shape()), like.dtype()); }

/// Inputs: q, k, v, the gradient of y, the rows' sums and delta; mask; start; the random source. Outputs: the gradients of q, k
/// and v.
class AttentionBackward : public Op {
 public:
  explicit AttentionBackward(const Options& options) : options_(options) {}
  std::string_view name() const override { return "attention_backward"; }
  TuningHints tuning(const Specs&) const override { return options_.tuning(6); }
  std::vector<std::int64_t> lengths(const Specs& inputs) const override { return options_.lengths(inputs); }
  Tensors at_length(const Specs& inputs, std::int64_t from, std::int64_t to) const override {
    return options_.at_length(inputs, from, to, true);
  }
  Fields fields() const override { return options_.fields(); }
  Specs infer(const Specs& inputs) const override { return {inputs[0], inputs[1], inputs[2]}; }

  /// The three gradients are functions of q, k, v, g and the mask; sums and delta are only there to save work. With P the
  /// weights, D the gradient of P and S = P (D - rows' sums of P D) that of the scores: dq = S k, dk = S^T q (both scaled), dv =
  /// P^T g.
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto a = options_.attention(inputs);
    const GradientInputs p(a, inputs[3]);
    const auto of = [&](std::size_t i, const Tensor& like) {
      return gradients[i].defined() ? reshape(as_f32(gradients[i]), like.shape()) : zeros_like(like);
    };
    const Tensor to_dq = of(0, p.q), to_dk = of(1, p.k), to_dv = of(2, p.v);
    const Tensor scores = p.weights * (p.towards - p.delta);  // S
    const Tensor to_scores = (product_of_rows(to_dq, p.k) + product_of_rows(p.q, to_dk)) * a.scale;
    const Tensor mean = row_sums(p.weights * to_scores);
    const Tensor to_towards = p.masked(p.weights * (to_scores - mean));
    const Tensor to_weights = to_scores * (p.towards - p.delta) - mean * p.towards + p.masked(product_of_rows(p.g, to_dv));
    const Tensor more = p.of_scores(to_weights);
    Tensors result(inputs.size());
    result[0] = as((matmul(scores, to_dk) + matmul(more, p.k)) * a.scale, inputs[0]);
    result[1] = as((transposed_product(scores, to_dq) + transposed_product(more, p.q)) * a.scale, inputs[1]);
    result[2] = as(transposed_product(to_towards, p.g), inputs[2]);
    result[3] = as(matmul(p.masked(p.weights), to_dv) + matmul(to_towards, p.v), inputs[3]);
    if (options_.masked && is_floating(a.mask.dtype()))
      result[inputs.size() - options_.extras()] = cast(sum_to(reshape(more, p.all), a.mask.shape()), a.mask.dtype());
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    auto p = options_.problem(recorder);
    p.backward = true;
    p.g = recorder.input(3);
    p.sums = recorder.input(4);
    p.delta = recorder.input(5);
    p.dq = recorder.output(0);
    p.dk = recorder.output(1);
    p.dv = recorder.output(2);
    Options::lower(p, recorder);
  }

 private:
  Options options_;
};

/// Inputs: q, k, v; mask; start; the random source. Outputs: y, and for each row the logarithm of the sum of its scores'
/// exponentials.
class AttentionOp : public Op {
 public:
  explicit AttentionOp(const Options& options) : options_(options) {}
  std::string_view name() const override { return "attention"; }
  TuningHints tuning(const Specs&) const override { return options_.tuning(3); }
  std::vector<std::int64_t> lengths(const Specs& inputs) const override { return options_.lengths(inputs); }
  Tensors at_length(const Specs& inputs, std::int64_t from, std::int64_t to) const override {
    return options_.at_length(inputs, from, to, false);
  }
  Precision precision() const override { return Precision::own; }
  Fields fields() const override { return options_.fields(); }
  Specs infer(const Specs& inputs) const override {
    const auto& q = inputs[0];
    return {{q.shape.with(-1, inputs[2].shape[-1]), q.dtype}, {q.shape.with(-1, 1), computed_in(q.dtype)}};
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    const auto& g = gradients[0];
    Tensors all{inputs[0], inputs[1], inputs[2], g, outputs[1], row_sums(as_f32(g) * as_f32(outputs[0]))};
    all.insert(all.end(), inputs.begin() + 3, inputs.end());
    Tensors result = apply_all(std::make_shared<AttentionBackward>(options_), std::move(all));
    result.resize(inputs.size());
    if (options_.masked && is_floating(inputs[3].dtype())) {
      // Made up of others: the mask's gradient is as large as the scores.
      const GradientInputs p(options_.attention(inputs), g);
      result[3] = cast(sum_to(reshape(p.of_scores(p.towards), p.all), inputs[3].shape()), inputs[3].dtype());
    }
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    auto p = options_.problem(recorder);
    p.y = recorder.output(0);
    p.sums = recorder.output(1);
    Options::lower(p, recorder);
  }

 private:
  Options options_;
};

/// x {..., heads, length, width} as {batch, heads, length, width}.
Tensor four(const Tensor& x) {
  std::int64_t batch = 1;
  for (int d = 0; d < x.rank() - 3; ++d) batch *= x.size(d);
  return reshape(x, Shape{batch, x.rank() < 3 ? 1 : x.size(-3), x.size(-2), x.size(-1)});
}

/// The same of a mask, whose extents may be 1 or missing; where it has some of the batch's dimensions only, it is made to have
/// all.
Tensor mask_of_four(const Tensor& mask, const Tensor& q) {
  auto extents = mask.shape().extents();
  while (static_cast<int>(extents.size()) < std::max(q.rank(), 3)) extents.insert(extents.begin(), 1);
  bool some = false, all = true;
  for (int d = 0; d < q.rank() - 3; ++d) {
    const auto extent = extents[static_cast<std::size_t>(d)];
    some = some || extent != 1;
    all = all && extent == q.size(d);
  }
  auto x = reshape(mask, Shape(extents));
  if (some && !all) {
    for (int d = 0; d < q.rank() - 3; ++d) extents[static_cast<std::size_t>(d)] = q.size(d);
    x = expand(x, Shape(extents));
  }
  return four(x);
}

}  // namespace

Tensor streaming_attention(const Attention& a) {
  Options options{.causal = a.causal,
                  .masked = a.mask.defined(),
                  .started = a.start.defined(),
                  .scale = a.scale,
                  .dropout = a.dropout,
                  .has_first = a.random.first.defined()};
  Tensors inputs{four(a.q), four(a.k), four(a.v)};
  if (options.masked) inputs.push_back(mask_of_four(a.mask, a.q));
  if (options.started) inputs.push_back(a.start);
  if (a.dropout > 0) a.random.add_to(inputs);
  const auto y = apply_all(std::make_shared<AttentionOp>(options), std::move(inputs))[0];
  return reshape(y, a.q.shape().with(-1, a.v.size(-1)));
}

}  // namespace clnet::ops
