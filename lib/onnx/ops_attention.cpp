// Attention and rotary embeddings.
#include <fmt/format.h>

#include <cmath>

#include "clnet/ops/attention.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/program.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

/// {N, T, heads * size} as {N, heads, T, size}; four dimensions stay as they are.
Tensor by_heads(const Call& call, const Tensor& x, std::string_view attribute) {
  if (x.rank() == 4) return x;
  const auto heads = call.attribute(attribute, std::int64_t{0});
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    call.fail(fmt::format("{} is {} of {}", attribute, heads, to_string(x.shape())));
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}

/// Adds -infinity where `allowed` is false.
Tensor masked(const Tensor& scores, const Tensor& allowed) { return where(allowed, scores, -INFINITY); }

/// Scores are capped before they are masked, as ONNX 1.22 has it; earlier releases had the other order.
/// Outputs: Y, present key and value, and the scores at the stage that qk_matmul_output_mode names.
Outputs attention(const Call& call) {
  const bool flat = call.shape(0).rank() == 3;
  const Tensor q = by_heads(call, call.x(0), "q_num_heads");
  Tensor k = by_heads(call, call.x(1), "kv_num_heads"), v = by_heads(call, call.x(2), "kv_num_heads");
  const auto past = call.has(4) ? call.shape(4)[2] : 0;
  if (call.has(4)) k = concat({call.x(4), k}, 2);
  if (call.has(5)) v = concat({call.x(5), v}, 2);
  const Tensor present_k = k, present_v = v;
  const auto groups = k.size(1) > 0 ? q.size(1) / k.size(1) : 0;
  if (groups < 1 || q.size(1) != groups * k.size(1)) call.fail(fmt::format("{} heads of q and {} of k", q.size(1), k.size(1)));
  if (groups > 1) {
    k = repeat_interleave(k, groups, 1);
    v = repeat_interleave(v, groups, 1);
  }
  const double scale = call.attribute("scale", 1 / std::sqrt(static_cast<double>(q.size(3)))), root = std::sqrt(scale);
  const double cap = call.attribute("softcap", 0.0);
  const auto stage = call.attribute("qk_matmul_output_mode", std::int64_t{0});
  const auto length = q.size(2), keys = k.size(2);

  const Tensor products = matmul(q * root, k * root, {.transpose_b = true});
  const Tensor capped = cap > 0 ? tanh(products / cap) * cap : products;
  Tensor scores = capped;
  Tensor mask = call.optional(3);
  // A mask of fewer keys forbids the others.
  if (mask.defined() && mask.size(-1) < keys) {
    std::vector<std::int64_t> none(static_cast<std::size_t>(mask.rank())), more(none);
    more.back() = keys - mask.size(-1);
    mask = mask.dtype() == Dtype::boolean ? pad(mask, none, more, 0) : pad(mask, none, more, -INFINITY);
  }
  if (mask.defined()) scores = mask.dtype() == Dtype::boolean ? masked(scores, mask) : scores + cast(mask, scores.dtype());
  // Of each query: its place among the keys. With a cache of fixed length queries are the last of each sequence's keys.
  const Tensor columns = arange(keys);
  Tensor rows = unsqueeze(arange(length, static_cast<double>(past)), 1);
  if (call.has(6) && !call.has(4))
    rows = reshape(cast(call.x(6), Dtype::i64), {-1, 1, 1, 1}) - static_cast<double>(length) + unsqueeze(arange(length), 1);
  if (call.attribute("is_causal", std::int64_t{0}) != 0) scores = masked(scores, less_equal(columns, rows));
  const auto left = call.attribute("left_window_size", std::int64_t{-1}),
             right = call.attribute("right_window_size", std::int64_t{-1});
  if (left >= 0) scores = masked(scores, greater_equal(columns, rows - static_cast<double>(left)));
  if (right >= 0) scores = masked(scores, less_equal(columns, rows + static_cast<double>(right)));
  if (call.has(6)) {
    const Tensor counts = reshape(cast(call.x(6), Dtype::i64), {-1, 1, 1, 1});
    scores = masked(scores, less(columns, counts));
  }
  // A query that may see no key gives zeros.
  Tensor weights;
  if (mask.defined() || call.has(6) || left >= 0 || right >= 0) {
    const Tensor blind = eq(max(scores, {3}, true), -INFINITY);
    weights = where(blind, 0.0, softmax(where(blind, 0.0, scores), 3));
  } else {
    weights = softmax(scores, 3);
  }
  Tensor y = matmul(weights, v);
  if (flat) y = reshape(transpose(y, 1, 2), {y.size(0), y.size(2), y.size(1) * y.size(3)});
  Outputs out{call.give(y), call.give(present_k, 1), call.give(present_v, 2)};
  if (call.wants(3)) out.push_back(call.give(stage == 0 ? products : stage == 1 ? capped : stage == 2 ? scores : weights));
  return out;
}

/// Attention whose scores and probabilities go through graphs of the file. Numbers of 16 bits are computed in f32 after the
/// first product.
Outputs flex_attention(const Call& call) {
  const Tensor& q = call.x(0);
  Tensor k = call.x(1), v = call.x(2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.size(1) < 1 || q.size(1) % k.size(1) != 0)
    call.fail(fmt::format("q {}, k {} and v {}", to_string(q.shape()), to_string(k.shape()), to_string(v.shape())));
  if (const auto groups = q.size(1) / k.size(1); groups > 1) {
    k = repeat_interleave(k, groups, 1);
    v = repeat_interleave(v, groups, 1);
  }
  const double scale = call.attribute("scale", 1 / std::sqrt(static_cast<double>(q.size(3)))), root = std::sqrt(scale);
  const auto own = is_floating(call.type(0)) && call.type(0) != ElementType::f64 ? ElementType::f32 : call.type(0);
  const auto type = call.runner().stored(call.element_type("softmax_precision", own));
  const auto through = [&](std::string_view name, const Tensor& x) {
    const auto* graph = call.graph(name);
    if (!graph) return x;
    const std::vector<RunValue> inputs{RunValue(x, type)};
    const auto outputs = call.runner().run_body(*graph, inputs);
    if (outputs.size() != 1) call.fail(fmt::format("the graph {} has {} outputs", name, outputs.size()));
    return cast(outputs[0].tensor(), x.dtype());
  };
  const Tensor scores = through("score_mod", cast(matmul(q * root, k * root, {.transpose_b = true}), dtype_of(type)));
  const Tensor weights = through("prob_mod", softmax(scores, 3));
  return {call.give(matmul(weights, cast(v, weights.dtype())), 2)};
}

/// Attention by a state {N, heads, key size, value size} that each step decays, corrects and reads, computed in f32.
Outputs linear_attention(const Call& call) {
  const auto rule = call.attribute("update_rule", std::string_view("gated_delta"));
  const bool gated = rule.starts_with("gated"), corrects = rule.ends_with("delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    call.fail(fmt::format("update_rule is \"{}\"", rule));
  if (gated != call.has(4) || corrects != call.has(5)) call.fail(fmt::format("decay and beta do not fit the rule {}", rule));
  const auto wide = [&](std::size_t input) { return cast(call.x(input), Dtype::f32); };
  const Tensor k = by_heads(call, wide(1), "kv_num_heads"), v = by_heads(call, wide(2), "kv_num_heads");
  const auto batch = k.size(0), heads = k.size(1), length = k.size(2), size = k.size(3), width = v.size(3);
  Tensor q = by_heads(call, wide(0), "q_num_heads");
  if (q.size(1) % heads != 0 || q.size(2) != length || q.size(3) != size || v.size(2) != length)
    call.fail(fmt::format("q {}, k {} and v {} by heads", to_string(q.shape()), to_string(k.shape()), to_string(v.shape())));
  const auto groups = q.size(1) / heads;
  q = reshape(q, {batch, heads, groups, length, size});
  double scale = call.attribute("scale", 0.0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(size));
  // {N, T, heads * n} as {N, heads, T, n}.
  const auto parted = [&](std::size_t input, std::int64_t parts) {
    const Tensor x = wide(input);
    if (x.rank() != 3 || parts < 1 || x.size(2) % parts != 0)
      call.fail(fmt::format("input {} is {}", input, to_string(x.shape())));
    return transpose(reshape(x, {batch, length, parts, x.size(2) / parts}), 1, 2);
  };
  const Tensor decay = gated ? exp(parted(4, heads)) : Tensor{};
  const Tensor beta = corrects ? parted(5, call.shape(5)[-1]) : Tensor{};
  Tensor state = call.has(3) ? wide(3) : zeros({batch, heads, size, width});
  std::vector<Tensor> steps;
  for (std::int64_t t = 0; t < length; ++t) {
    call.runner().options().check();
    const auto at = [t](const Tensor& x) { return select(x, 2, t); };
    if (gated) state = state * unsqueeze(at(decay), -1);
    const Tensor key = unsqueeze(at(k), -1);  // {N, heads, size, 1}
    Tensor value = unsqueeze(at(v), 2);       // {N, heads, 1, width}
    if (corrects) value = unsqueeze(at(beta), -1) * (value - matmul(transpose(key, 2, 3), state));
    state = state + key * value;
    steps.push_back(reshape(matmul(select(q, 3, t), state), {batch, heads * groups * width}));
  }
  return {call.give(stack(steps, 1) * scale), call.give(state, call.has(3) ? 3 : 0)};
}

/// Rotates pairs of the first elements of each head by angles of their position.
Outputs rotary(const Call& call) {
  const Tensor& given = call.x(0);
  const bool flat = given.rank() == 3;
  const Tensor x = flat ? by_heads(call, given, "num_heads") : given;  // {N, heads, T, size}
  Tensor cosines = call.x(1), sines = call.x(2);
  auto turned = call.attribute("rotary_embedding_dim", std::int64_t{0});
  if (turned == 0) turned = x.size(3);
  const auto half = turned / 2;
  const auto angles = [&](Tensor table) {
    // {positions, half} by position ids {N, T}, or {N, T, half}.
    if (call.has(3)) {
      const Tensor lines = index_select(table, 0, reshape(call.x(3), {-1}));
      table = reshape(lines, {call.shape(3)[0], call.shape(3)[1], lines.size(1)});
    }
    return unsqueeze(slice(table, -1, 0, half), 1);  // {N, 1, T, half}
  };
  cosines = angles(cosines);
  sines = angles(sines);
  const Tensor part = slice(x, 3, 0, turned);
  const bool interleaved = call.attribute("interleaved", std::int64_t{0}) != 0;
  const Tensor a = interleaved ? slice(part, 3, 0, turned, 2) : slice(part, 3, 0, half);
  const Tensor b = interleaved ? slice(part, 3, 1, turned, 2) : slice(part, 3, half, turned);
  const Tensor real = a * cosines - b * sines, imaginary = a * sines + b * cosines;
  Tensor y = interleaved ? reshape(stack({real, imaginary}, 4), part.shape()) : concat({real, imaginary}, 3);
  if (turned < x.size(3)) y = concat({y, slice(x, 3, turned, x.size(3))}, 3);
  return {call.give(flat ? reshape(transpose(y, 1, 2), given.shape()) : y)};
}

}  // namespace

std::vector<Operator> attention_operators() {
  using enum Role;
  return {
      {"Attention", 23, attention, {data, data, data, statistic, data}},
      {"FlexAttention", 1, flex_attention, {}, "ai.onnx.preview"},
      {"LinearAttention", 27, linear_attention},
      {"RotaryEmbedding", 23, rotary, {data, statistic}},
  };
}

}  // namespace clnet::onnx
