// rnn_layer, lstm_layer, gru_layer and their single steps: the products with all inputs at once, then the recurrence.
#include <fmt/format.h>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/composition.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/recurrent/recurrence.h"

namespace clnet {

namespace ops {

namespace {

/// Checks arguments and brings them to f32.
class Layer {
 public:
  /// x is {T, N, I} for a layer, {N, I} for a step.
  Layer(std::string_view op, Cell cell, const Tensor& x, const RecurrentWeights& weights, int rank)
      : op_(op), cell_(cell), x_(x), weights_(weights) {
    require_defined(op, {{"x", x}, {"weight_ih", weights.weight_ih}, {"weight_hh", weights.weight_hh}});
    require_floating(op, x.spec());
    if (x.rank() != rank)
      throw ShapeError(fmt::format("{}: x must be {}, got {}", op, rank == 3 ? "{T, N, I}" : "{N, I}", to_string(x.spec())));
    if (rank == 3 && x.size(0) == 0) throw ShapeError(fmt::format("{}: x {} has no step", op, to_string(x.spec())));
    const auto &ih = weights.weight_ih, &hh = weights.weight_hh;
    const auto gates = gate_count(cell);
    if (ih.rank() != 2 || ih.size(0) == 0 || ih.size(0) % gates != 0)
      throw ShapeError(fmt::format("{}: weight_ih must be {{{}, I}}, got {}", op, gates == 1 ? "H" : fmt::format("{} H", gates),
                                   to_string(ih.spec())));
    hidden_ = ih.size(0) / gates;
    projected_ = hidden_;
    if (weights.weight_hr.defined()) {
      if (cell != Cell::lstm) throw Error(fmt::format("{}: weight_hr is for an LSTM only", op));
      if (weights.weight_hr.rank() == 2) projected_ = weights.weight_hr.size(0);
      check("weight_hr", weights.weight_hr, {projected_, hidden_});
      if (projected_ == 0)
        throw ShapeError(fmt::format("{}: weight_hr {} makes no state", op, to_string(weights.weight_hr.spec())));
    }
    check("weight_ih", ih, {gates * hidden_, x.size(-1)});
    check("weight_hh", hh, {gates * hidden_, projected_});
    if (weights.bias_ih.defined()) check("bias_ih", weights.bias_ih, {gates * hidden_});
    if (weights.bias_hh.defined()) check("bias_hh", weights.bias_hh, {gates * hidden_});
  }

  /// A state in f32; zeros where it is undefined.
  Tensor state(std::string_view name, const Tensor& given, std::int64_t width) const {
    const Shape shape{x_.size(-2), width};
    if (!given.defined()) return zeros(shape, computed_in(x_.dtype()));
    check(name, given, shape);
    return as_f32(given);
  }
  Tensor h(std::string_view name, const Tensor& given) const { return state(name, given, projected_); }
  Tensor c(std::string_view name, const Tensor& given) const { return state(name, given, hidden_); }

  /// All that the recurrence reads but states and lengths.
  RecurrenceInputs inputs(const Tensor& lengths_given = {}) const {
    const auto &ih = weights_.bias_ih, &hh = weights_.bias_hh;
    RecurrenceInputs in;
    Tensor bias = ih.defined() ? as_f32(ih) : Tensor{};
    const auto add = [&](const Tensor& more) { bias = bias.defined() ? bias + more : more; };
    if (cell_ == Cell::gru) {
      in.bias_hn = hh.defined() ? as_f32(slice(hh, 0, 2 * hidden_, 3 * hidden_)) : zeros({hidden_}, computed_in(x_.dtype()));
      if (hh.defined()) add(pad(as_f32(slice(hh, 0, 0, 2 * hidden_)), {0}, {hidden_}));
    } else if (hh.defined()) {
      add(as_f32(hh));
    }
    Tensor x = as_f32(x_);
    if (lengths_given.defined()) {
      in.lengths = lengths(lengths_given);
      // What lies in the padding shall not reach the gradient of weight_ih, not even as 0 times NaN.
      const auto steps = unsqueeze(arange(x.size(0), 0, 1, in.lengths.dtype()), 1);
      x = where(unsqueeze(less(steps, in.lengths), 2), x, Tensor::scalar(0, x.dtype()));
    }
    in.gates = linear(x, as_f32(weights_.weight_ih), bias);
    in.weight_hh = as_f32(weights_.weight_hh);
    if (weights_.weight_hr.defined()) in.weight_hr = as_f32(weights_.weight_hr);
    return in;
  }

  RecurrenceOutputs run(const RecurrenceInputs& in, bool reverse) const {
    auto out = recur({cell_, reverse}, in);
    for (auto* result : {&out.y, &out.h, &out.c})
      if (result->defined()) *result = to_input_dtype(*result);
    return out;
  }

  Tensor to_input_dtype(const Tensor& result) const { return cast(result, x_.dtype()); }

 private:
  Tensor lengths(const Tensor& given) const {
    if (given.dtype() != Dtype::i32 && given.dtype() != Dtype::i64)
      throw DtypeError(fmt::format("{}: lengths must be i32 or i64, got {}", op_, to_string(given.spec())));
    if (given.shape() != Shape{x_.size(1)}) wrong_shape("lengths", given, {x_.size(1)});
    return given;
  }
  void check(std::string_view name, const Tensor& tensor, const Shape& shape) const {
    if (tensor.shape() != shape) wrong_shape(name, tensor, shape);
    require_same_dtype(fmt::format("{}'s {}", op_, name), x_.spec(), tensor.spec());
  }
  [[noreturn]] void wrong_shape(std::string_view name, const Tensor& tensor, const Shape& shape) const {
    throw ShapeError(fmt::format("{}: {} must have shape {} for x {} and weight_ih {}, got {}", op_, name, to_string(shape),
                                 to_string(x_.shape()), to_string(weights_.weight_ih.shape()), to_string(tensor.shape())));
  }

  std::string_view op_;
  Cell cell_;
  const Tensor& x_;
  const RecurrentWeights& weights_;
  std::int64_t hidden_ = 0, projected_ = 0;
};

/// A layer, as one function.
void note_layer(std::string_view op, const Tensor& x, const Tensor& h0, const Tensor& c0, const RecurrentWeights& w,
                const RecurrentOptions& options, bool relu, const RecurrenceOutputs& out) {
  note_composition([&] {
    Tensors outputs{out.y, out.h};
    if (out.c.defined()) outputs.push_back(out.c);
    return Composition{op,
                       {x, h0, c0, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, w.weight_hr, options.lengths},
                       {{"reverse", options.reverse}, {"relu", relu}},
                       std::move(outputs)};
  });
}

Cell cell_of(Nonlinearity nonlinearity) { return nonlinearity == Nonlinearity::relu ? Cell::relu : Cell::tanh; }

RnnResult layer_of(std::string_view op, Cell cell, const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                   const RecurrentOptions& options) {
  const Layer layer(op, cell, x, weights, 3);
  auto in = layer.inputs(options.lengths);
  in.h0 = layer.h("h0", h0);
  const auto out = layer.run(in, options.reverse);
  note_layer(op, x, h0, {}, weights, options, cell == Cell::relu, out);
  return {out.y, out.h};
}

Tensor step_of(std::string_view op, Cell cell, const Tensor& x, const Tensor& h, const RecurrentWeights& weights) {
  const Layer layer(op, cell, x, weights, 2);
  const auto in = layer.inputs();
  return layer.to_input_dtype(one_step(cell, in.gates, layer.h("h", h), {}, in).h);
}

}  // namespace

}  // namespace ops

RnnResult rnn_layer(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights, Nonlinearity nonlinearity,
                    const RecurrentOptions& options) {
  return ops::layer_of("rnn_layer", ops::cell_of(nonlinearity), x, h0, weights, options);
}

LstmResult lstm_layer(const Tensor& x, const Tensor& h0, const Tensor& c0, const RecurrentWeights& weights,
                      const RecurrentOptions& options) {
  const ops::Layer layer("lstm_layer", ops::Cell::lstm, x, weights, 3);
  auto in = layer.inputs(options.lengths);
  in.h0 = layer.h("h0", h0);
  in.c0 = layer.c("c0", c0);
  const auto out = layer.run(in, options.reverse);
  ops::note_layer("lstm_layer", x, h0, c0, weights, options, false, out);
  return {out.y, out.h, out.c};
}

RnnResult gru_layer(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights, const RecurrentOptions& options) {
  return ops::layer_of("gru_layer", ops::Cell::gru, x, h0, weights, options);
}

Tensor rnn_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& weights, Nonlinearity nonlinearity) {
  return ops::step_of("rnn_cell", ops::cell_of(nonlinearity), x, h, weights);
}

LstmState lstm_cell(const Tensor& x, const LstmState& state, const RecurrentWeights& weights) {
  const ops::Layer layer("lstm_cell", ops::Cell::lstm, x, weights, 2);
  const auto in = layer.inputs();
  const auto next = ops::one_step(ops::Cell::lstm, in.gates, layer.h("h", state.h), layer.c("c", state.c), in);
  return {layer.to_input_dtype(next.h), layer.to_input_dtype(next.c)};
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& weights) {
  return ops::step_of("gru_cell", ops::Cell::gru, x, h, weights);
}

}  // namespace clnet
