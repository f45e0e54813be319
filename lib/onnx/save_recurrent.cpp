// How recurrent layers and attention are written.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

/// Inputs of a recurrent layer, as its composition has them.
enum RecurrentInput : std::size_t { input_x, input_h, input_c, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, input_lengths };

std::vector<std::int64_t> axis_list(std::int64_t axis) { return {axis}; }

/// Rows by gate in ONNX's order, {1, rows, ...}. The parameter stays as it is.
std::string in_onnx_order(SaveCall& call, const std::string& rows, const std::vector<std::int64_t>& blocks, std::int64_t hidden) {
  std::vector<std::string> parts;
  for (const auto block : blocks) parts.push_back(call.slice(rows, 0, block * hidden, (block + 1) * hidden));
  return parts.size() == 1 ? rows : call.op("Concat", parts, {write_attribute("axis", std::int64_t{0})});
}

void recurrent_layer(SaveCall& call) {
  const bool lstm = call.name() == "lstm_layer", gru = call.name() == "gru_layer";
  // clnet has i, f, g, o and r, z, n; ONNX i, o, f, g and z, r, n.
  const std::vector<std::int64_t> blocks = lstm  ? std::vector<std::int64_t>{0, 3, 1, 2}
                                           : gru ? std::vector<std::int64_t>{1, 0, 2}
                                                 : std::vector<std::int64_t>{0};
  const auto rows = call.fixed_extent(weight_hh, 0), hidden = rows / static_cast<std::int64_t>(blocks.size());
  const auto first = call.list(axis_list(0));
  const auto unsqueezed = [&](const std::string& value) { return call.op("Unsqueeze", {value, first}); };
  std::vector<std::string> inputs{call.in(input_x),
                                  unsqueezed(in_onnx_order(call, call.in(weight_ih), blocks, hidden)),
                                  unsqueezed(in_onnx_order(call, call.in(weight_hh), blocks, hidden)),
                                  {},
                                  {},
                                  {},
                                  {}};
  if (call.has(bias_ih) || call.has(bias_hh)) {
    const auto none = [&] {
      return call.tensor(HostTensor::of(type_of(call.dtype()), Shape{rows}, std::vector<double>(static_cast<std::size_t>(rows))));
    };
    const auto bias = [&](std::size_t input) {
      return call.has(input) ? in_onnx_order(call, call.in(input), blocks, hidden) : none();
    };
    inputs[3] = unsqueezed(call.op("Concat", {bias(bias_ih), bias(bias_hh)}, {write_attribute("axis", std::int64_t{0})}));
  }
  if (call.has(input_lengths)) inputs[4] = call.in_as(input_lengths, Dtype::i32);
  if (call.has(input_h)) inputs[5] = unsqueezed(call.in(input_h));
  if (call.has(input_c)) inputs[6] = unsqueezed(call.in(input_c));
  std::vector<std::string> attributes{write_attribute("hidden_size", hidden)};
  if (call.flag("reverse")) attributes.push_back(write_attribute("direction", std::string_view("reverse")));
  if (gru) attributes.push_back(write_attribute("linear_before_reset", std::int64_t{1}));
  if (!lstm && !gru && call.flag("relu")) attributes.push_back(write_attribute("activations", std::vector<std::string>{"Relu"}));
  const auto results = call.ops(lstm ? "LSTM" : gru ? "GRU" : "RNN", inputs, std::move(attributes), lstm ? 3 : 2);
  call.give(call.op("Squeeze", {results[0], call.list(axis_list(1))}));
  for (std::size_t i = 1; i < results.size(); ++i) call.give(call.op("Squeeze", {results[i], first}), i);
}
bool fits_recurrent(const SaveCall& call) { return !call.has(weight_hr) && (call.opset() >= 22 || call.dtype() != Dtype::bf16); }

/// Inputs of attention: queries, keys, values; a mask; where the first query is among the keys.
enum AttentionInput : std::size_t { input_q, input_k, input_v, input_mask, input_start };

Extent heads_of(const ExtentList& shape) { return shape.size() < 3 ? Extent{0, 1} : shape[shape.size() - 3]; }

/// Which keys each of causal queries sees.
std::string seen_keys(SaveCall& call, std::int64_t queries, std::int64_t keys) {
  if (!call.has(input_start)) {
    std::vector<std::int64_t> seen;
    for (std::int64_t i = 0; i < queries; ++i)
      for (std::int64_t j = 0; j < keys; ++j) seen.push_back(j <= i ? 1 : 0);
    return call.tensor(HostTensor::of(ElementType::boolean, Shape{queries, keys}, seen));
  }
  std::vector<std::int64_t> rows, columns;
  for (std::int64_t i = 0; i < queries; ++i) rows.push_back(i);
  for (std::int64_t j = 0; j < keys; ++j) columns.push_back(j);
  const auto row_places = call.tensor(HostTensor::of(ElementType::i64, Shape{queries, 1}, rows));
  const auto last = call.op("Add", {row_places, call.in_as(input_start, Dtype::i64)});
  return call.op("LessOrEqual", {call.list(columns), last});
}

void attention_of(SaveCall& call) {
  const auto q = call.shape(input_q), k = call.shape(input_k), v = call.shape(input_v);
  const auto rank = q.size();
  const auto queries = q[rank - 2], keys = k[rank - 2];
  const bool causal = call.flag("causal");
  if (causal && (!queries.fixed() || !keys.fixed())) call.follow_no_batch();
  const double scale = call.number("scale");
  if (call.opset() >= 23 && rank == 4 && !call.has(input_start)) {
    std::vector<std::string> attributes{write_attribute("scale", scale)};
    if (causal) attributes.push_back(write_attribute("is_causal", std::int64_t{1}));
    auto mask = !call.has(input_mask)                      ? std::string()
                : call.dtype(input_mask) == Dtype::boolean ? call.in(input_mask)
                                                           : call.in_as(input_mask, call.dtype());
    // ONNX's has at least queries and keys.
    if (call.has(input_mask) && call.rank(input_mask) < 2) mask = call.expand(mask, {queries, keys});
    return call.give(call.op("Attention", {call.in(input_q), call.in(input_k), call.in(input_v), mask}, std::move(attributes)));
  }
  // Scores and weights are f32 where the inputs are narrower.
  const auto wide = call.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  // Heads that share keys are rows of one matrix. Those of one head are for all, as a product has it.
  const auto heads = heads_of(q), key_heads = heads_of(k);
  const bool shares = heads != key_heads && (heads.fixed() || key_heads != Extent{0, 1});
  if (shares && (!heads.fixed() || !key_heads.fixed())) call.follow_no_batch();
  auto grouped = q, scores_shape = q;
  scores_shape.back() = keys;
  if (shares) {
    const auto groups = heads.constant / key_heads.constant;
    grouped[rank - 3] = k[rank - 3];
    grouped[rank - 2] = {queries.factor * groups, queries.constant * groups};
  }
  auto rows = call.in_as(input_q, wide);
  if (shares) rows = call.reshape(rows, grouped);
  std::vector<std::int64_t> turned;
  for (std::size_t d = 0; d < rank; ++d) turned.push_back(static_cast<std::int64_t>(d));
  std::swap(turned[rank - 1], turned[rank - 2]);
  auto scores = call.op("MatMul", {rows, call.transpose(call.in_as(input_k, wide), turned)});
  if (shares) scores = call.reshape(scores, scores_shape);
  scores = call.op("Mul", {scores, call.scalar(scale, wide)});
  const auto hidden = call.scalar(-std::numeric_limits<double>::infinity(), wide);
  if (causal) scores = call.op("Where", {seen_keys(call, queries.constant, keys.constant), scores, hidden});
  if (call.has(input_mask))
    scores = call.dtype(input_mask) == Dtype::boolean ? call.op("Where", {call.in(input_mask), scores, hidden})
                                                      : call.op("Add", {scores, call.in_as(input_mask, wide)});
  const auto softmax = [&](const std::string& value) {
    return call.op("Softmax", {value}, {write_attribute("axis", std::int64_t{-1})});
  };
  std::string weights;
  if (call.has(input_mask) || call.has(input_start)) {
    // A query that may look at nothing.
    const auto most = call.op("ReduceMax", {scores, call.list(axis_list(-1))}, {write_attribute("keepdims", std::int64_t{1})});
    const auto nothing = call.op("Equal", {most, hidden}), zero = call.scalar(0, wide);
    weights = call.op("Where", {nothing, zero, softmax(call.op("Where", {nothing, zero, scores}))});
  } else {
    weights = softmax(scores);
  }
  if (shares) {
    auto shape = grouped;
    shape.back() = keys;
    weights = call.reshape(weights, shape);
  }
  auto y = call.op("MatMul", {weights, call.in_as(input_v, wide)});
  if (shares) {
    auto shape = q;
    shape.back() = v.back();
    y = call.reshape(y, shape);
  }
  call.give(call.out().dtype == wide ? y : call.cast(y, call.out().dtype));
}
bool fits_attention(const SaveCall& call) { return call.number("dropout") == 0; }

}  // namespace

std::vector<Saver> recurrent_savers() {
  return {{"rnn_layer", recurrent_layer, fits_recurrent},
          {"gru_layer", recurrent_layer, fits_recurrent},
          {"lstm_layer", recurrent_layer, fits_recurrent},
          {"scaled_dot_product_attention", attention_of, fits_attention}};
}

}  // namespace clnet::onnx
