// Attention as exporters write it: products of queries and keys, a scale, a mask, softmax, products with the values. A query
// without any key is NaN, as the Softmax of the file has it.
#include <algorithm>
#include <cmath>

#include "clnet/ops/attention.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/passes.h"

namespace clnet::onnx {
namespace {

/// Factors of the scores: inputs of the pattern, and whether each divides.
struct Scales {
  std::vector<Slot> slots;
  std::vector<bool> divides;
};

/// The value before products and quotients with fixed numbers, which go to `scales`.
Slot unscaled(const Uses& uses, Slot slot, Scales& scales, std::vector<std::size_t>& parts) {
  for (;;) {
    const auto product = uses.maker(slot, "Mul"), quotient = uses.maker(slot, "Div");
    if (!product && !quotient) return slot;
    const auto index = product ? *product : *quotient;
    const auto operands = uses.with_fixed(index);
    if (!operands || (quotient && operands->first != uses.input(index, 0)) || uses.readers(slot) != 1) return slot;
    parts.push_back(index);
    scales.slots.push_back(operands->second);
    scales.divides.push_back(quotient.has_value());
    slot = operands->first;
  }
}

enum class Masked : std::uint8_t { no, by_sum, where_true, where_false };

/// The scores before a sum with a mask, or a choice between them and a fixed number, which is `fill` then.
Slot unmasked(const Uses& uses, Slot slot, Masked& kind, Slot& mask, Slot& fill, std::vector<std::size_t>& parts) {
  const auto is_scores = [&](Slot of) {
    return uses.readers(of) == 1 && (uses.maker(of, "MatMul") || uses.maker(of, "Mul") || uses.maker(of, "Div"));
  };
  if (const auto sum = uses.maker(slot, "Add")) {
    const auto& inputs = uses.at(*sum).inputs;
    if (inputs.size() != 2) return -1;
    const auto scores = is_scores(inputs[0]) ? 0U : 1U;
    if (!is_scores(inputs[scores])) return -1;
    parts.push_back(*sum);
    kind = Masked::by_sum;
    mask = inputs[1 - scores];
    return inputs[scores];
  }
  if (const auto choice = uses.maker(slot, "Where")) {
    const auto& inputs = uses.at(*choice).inputs;
    if (inputs.size() != 3) return -1;
    const auto scores = uses.is_fixed(inputs[1]) ? 2U : 1U;
    if (!uses.is_fixed(inputs[3 - scores]) || !is_scores(inputs[scores])) return -1;
    parts.push_back(*choice);
    kind = scores == 1 ? Masked::where_true : Masked::where_false;
    mask = inputs[0];
    fill = inputs[3 - scores];
    return inputs[scores];
  }
  return slot;
}

Dims all_but_last_swapped(int rank) {
  Dims dims;
  for (int d = 0; d < rank; ++d) dims.push_back(d);
  std::swap(dims[static_cast<std::size_t>(rank) - 1], dims[static_cast<std::size_t>(rank) - 2]);
  return dims;
}

/// The inputs of the pattern; scales are the last.
struct AttentionInput {
  enum Place : std::size_t { q, k, v, mask, fill, cut, scale };
};

struct AttentionPattern {
  std::vector<std::int64_t> turned;  ///< the permutation that makes k's columns of its input; empty: the input is so
  Masked masked = Masked::no;
  std::vector<bool> divides;

  std::optional<Outputs> operator()(const Call& call) const {
    const auto rank = call.shape(AttentionInput::q).rank();
    if (rank < 3 || call.shape(AttentionInput::v).rank() != rank || !is_floating(call.type(AttentionInput::q)) ||
        call.type(AttentionInput::k) != call.type(AttentionInput::q) ||
        call.type(AttentionInput::v) != call.type(AttentionInput::q))
      return std::nullopt;
    double factor = 1;
    for (std::size_t i = 0; i < divides.size(); ++i) {
      const auto number = number_of(call, AttentionInput::scale + i);
      if (!number || call.shape(AttentionInput::scale + i).rank() > rank) return std::nullopt;
      factor *= divides[i] ? 1 / *number : *number;
    }
    if (!std::isfinite(factor) || factor <= 0) return std::nullopt;
    auto dims = all_but_last_swapped(rank);
    if (!turned.empty() && !call.has(AttentionInput::cut)) {
      if (turned.size() != static_cast<std::size_t>(rank)) return std::nullopt;
      for (auto& dim : dims) dim = static_cast<int>(turned[static_cast<std::size_t>(dim)]);
    }
    const Tensor &queries = call.x(AttentionInput::q), &values = call.x(AttentionInput::v);
    Tensor keys = call.x(AttentionInput::k);
    if (call.has(AttentionInput::cut)) {
      if (!is_cut_of_heads(call)) return std::nullopt;
      keys = reshape(keys, {queries.size(0), queries.size(1), keys.size(1), keys.size(2)});
    } else {
      if (keys.rank() != rank) return std::nullopt;
      keys = permute(keys, dims);
    }
    for (int d = 0; d + 2 < rank; ++d)
      if (queries.size(d) != keys.size(d) || queries.size(d) != values.size(d)) return std::nullopt;
    if (queries.size(-1) != keys.size(-1) || keys.size(-2) != values.size(-2)) return std::nullopt;
    AttentionOptions options{.scale = factor};
    if (masked != Masked::no) {
      options.mask = call.x(AttentionInput::mask);
      auto scores = std::vector<std::int64_t>(queries.shape().begin(), queries.shape().end());
      scores.back() = keys.size(-2);
      if (!(broadcast(options.mask.shape(), Shape(scores), "mask") == Shape(scores))) return std::nullopt;
      if (masked == Masked::by_sum && options.mask.dtype() != queries.dtype()) return std::nullopt;
      if (masked != Masked::by_sum && number_of(call, AttentionInput::fill) != -INFINITY) return std::nullopt;
      if (masked == Masked::where_false) options.mask = logical_not(options.mask);
    }
    Tensor y = scaled_dot_product_attention(queries, keys, values, options);
    if (masked != Masked::no && may_hide_all(call)) {
      const bool is_added = masked == Masked::by_sum;
      const Tensor blind = is_added ? eq(max(options.mask, {-1}, true), -INFINITY) : logical_not(any(options.mask, {-1}, true));
      y = y + cast(where(blind, NAN, 0.0), y.dtype());
    }
    return Outputs{call.give(y)};
  }

  /// Whether the mask may leave a query without a key: false where the host knows better.
  bool may_hide_all(const Call& call) const {
    const auto& host = call.in(AttentionInput::mask).host();
    if (!host || host->shape.rank() == 0) return true;
    const auto numbers = host->numbers();
    const auto columns = host->shape[-1];
    const auto is_hidden = [&](double number) {
      return masked == Masked::by_sum ? number == -INFINITY : (number != 0) == (masked == Masked::where_false);
    };
    for (auto row = numbers.begin(); columns > 0 && row != numbers.end(); row += columns)
      if (std::all_of(row, row + columns, is_hidden)) return true;
    return false;
  }

  /// Whether keys {batch * heads, keys, width} were turned and then cut into {batch, heads, width, keys}.
  bool is_cut_of_heads(const Call& call) const {
    const auto &queries = call.shape(AttentionInput::q), &keys = call.shape(AttentionInput::k);
    if (queries.rank() != 4 || keys.rank() != 3 || turned != std::vector<std::int64_t>{0, 2, 1} ||
        !call.in(AttentionInput::cut).host())
      return false;
    return call.integers(AttentionInput::cut) == std::vector<std::int64_t>{queries[0], queries[1], keys[2], keys[1]};
  }
};

}  // namespace

std::optional<Match> match_attention(const Uses& uses, std::size_t last) {
  if (!uses.is(last, "MatMul")) return std::nullopt;
  Match out;
  out.inputs.assign(AttentionInput::scale, -1);
  const auto softmax = uses.maker(uses.input(last, 0), "Softmax");
  if (!softmax) return std::nullopt;
  // Before operator set 13 it is along the last dimension by this axis alone, in any rank.
  std::optional<std::int64_t> axis;
  for (const auto& attribute : uses.at(*softmax).node->attributes)
    if (attribute.name == "axis" && attribute.reference.empty()) axis = attribute.integer;
  if (!axis && uses.at(*softmax).opset < 13) return std::nullopt;
  out.parts = {last, *softmax};
  AttentionPattern pattern;
  auto slot = unmasked(uses, uses.input(*softmax, 0), pattern.masked, out.inputs[AttentionInput::mask],
                       out.inputs[AttentionInput::fill], out.parts);
  Scales scales;
  slot = unscaled(uses, slot, scales, out.parts);
  const auto products = uses.maker(slot, "MatMul");
  if (!products) return std::nullopt;
  out.parts.push_back(*products);
  out.inputs[AttentionInput::q] = unscaled(uses, uses.input(*products, 0), scales, out.parts);
  out.inputs[AttentionInput::k] = unscaled(uses, uses.input(*products, 1), scales, out.parts);
  out.inputs[AttentionInput::v] = uses.input(last, 1);
  if (const auto reshaped = uses.maker(out.inputs[AttentionInput::k], "Reshape");
      reshaped && uses.readers(out.inputs[AttentionInput::k]) == 1) {
    const auto& inputs = uses.at(*reshaped).inputs;
    if (inputs.size() == 2 && uses.is_fixed(inputs[1]) && uses.readers(inputs[0]) == 1 && uses.maker(inputs[0], "Transpose")) {
      out.parts.push_back(*reshaped);
      out.inputs[AttentionInput::cut] = inputs[1];
      out.inputs[AttentionInput::k] = inputs[0];
    }
  }
  if (const auto turn = uses.maker(out.inputs[AttentionInput::k], "Transpose");
      turn && uses.readers(out.inputs[AttentionInput::k]) == 1)
    if (auto permutation = integers_of(uses.at(*turn), "perm")) {
      out.parts.push_back(*turn);
      out.inputs[AttentionInput::k] = uses.input(*turn, 0);
      pattern.turned = std::move(*permutation);
    }
  pattern.divides = scales.divides;
  out.inputs.insert(out.inputs.end(), scales.slots.begin(), scales.slots.end());
  out.run = [pattern, axis](const Call& call) -> std::optional<Outputs> {
    if (axis && *axis != -1 && *axis != call.shape(AttentionInput::q).rank() - 1) return std::nullopt;
    return pattern(call);
  };
  return out;
}

}  // namespace clnet::onnx
