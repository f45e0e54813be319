// Attention of operator sets 23 and 24, and rotary embeddings.
#include <fmt/format.h>

#include <cmath>

#include "clnet/ops/attention.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/index.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"

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
  Tensor scores = products;
  Tensor mask = call.optional(3);
  // A mask of fewer keys forbids the others.
  if (mask.defined() && mask.size(-1) < keys) {
    std::vector<std::int64_t> none(static_cast<std::size_t>(mask.rank())), more(none);
    more.back() = keys - mask.size(-1);
    mask = mask.dtype() == Dtype::boolean ? pad(mask, none, more, 0) : pad(mask, none, more, -INFINITY);
  }
  if (mask.defined()) scores = mask.dtype() == Dtype::boolean ? masked(scores, mask) : scores + cast(mask, scores.dtype());
  if (call.attribute("is_causal", std::int64_t{0}) != 0) {
    Tensor rows = unsqueeze(arange(length, static_cast<double>(past)), 1);
    const Tensor columns = arange(keys);
    // With a cache of fixed length the queries are the last of each sequence's keys.
    if (call.has(6) && !call.has(4))
      rows = reshape(cast(call.x(6), Dtype::i64), {-1, 1, 1, 1}) - static_cast<double>(length) + unsqueeze(arange(length), 1);
    scores = masked(scores, less_equal(columns, rows));
  }
  if (call.has(6)) {
    const Tensor counts = reshape(cast(call.x(6), Dtype::i64), {-1, 1, 1, 1});
    scores = masked(scores, less(arange(keys), counts));
  }
  const Tensor biased = scores;
  if (cap > 0) scores = tanh(scores / cap) * cap;
  const Tensor capped = scores;
  // tanh() made of what is forbidden a number again.
  if (cap > 0) scores = where(eq(biased, -INFINITY), -INFINITY, scores);
  const Tensor weights = softmax(scores, 3);
  Tensor y = matmul(weights, v);
  if (flat) y = reshape(transpose(y, 1, 2), {y.size(0), y.size(2), y.size(1) * y.size(3)});
  Outputs out{call.give(y), call.give(present_k, 1), call.give(present_v, 2)};
  if (call.wants(3)) out.push_back(call.give(stage == 0 ? products : stage == 1 ? biased : stage == 2 ? capped : weights));
  return out;
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
  return {{"Attention", 23, attention, {Role::data, Role::data, Role::data, Role::statistic, Role::data}},
          {"RotaryEmbedding", 23, rotary, {Role::data, Role::statistic}}};
}

}  // namespace clnet::onnx
