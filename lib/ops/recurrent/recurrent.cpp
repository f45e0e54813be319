// The recurrence as one operation, and its gradient as another. Second derivatives go through the composed form.
#include <algorithm>

#include "clnet/ops.h"
#include "lib/graph/node.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/gradients_through.h"
#include "lib/ops/recurrent/recurrent_solvers.h"

namespace clnet::ops {

namespace {

Tensor or_zeros(const Tensor& gradient, const Tensor& like) { return gradient.defined() ? gradient : zeros_like(like); }

/// Inputs and outputs of the operations as lists: those that a cell has, in the order of their structs.
Tensors list_of(std::initializer_list<Tensor> all) {
  Tensors result;
  std::copy_if(all.begin(), all.end(), std::back_inserter(result), [](const Tensor& tensor) { return tensor.defined(); });
  return result;
}

class RecurrentOp : public Op {
 public:
  RecurrentOp(const Recurrence& kind, bool lengths) : kind_(kind), lengths_(lengths) {}
  Fields fields() const override {
    return {{"cell", std::string(to_string(kind_.cell))}, {"reverse", kind_.reverse}, {"lengths", lengths_}};
  }
  std::vector<std::int64_t> lengths(const Specs& inputs) const override { return {inputs[0].shape[0]}; }

 protected:
  bool lstm() const { return kind_.cell == Cell::lstm; }
  bool gru() const { return kind_.cell == Cell::gru; }
  bool gated() const { return lstm() || gru(); }
  /// Steps are the batch: of many with random weights the states' rounding would be all that is seen.
  static TuningHints tuned(const Specs& inputs, std::vector<std::size_t> batches, std::size_t weight) {
    return {.list = "recurrent", .batches = std::move(batches), .unit = 2, .indices = inputs[0].shape[0] + 1, .packed = weight};
  }

  Recurrence kind_;
  bool lengths_;
};

/// Inputs: RecurrentGradientInputs. Outputs: the gradients of the gates, of h0, of c0 (LSTM), and of the product of weight_hh and
/// h (GRU; else that is the gates').
class RecurrentBackward : public RecurrentOp {
 public:
  using RecurrentOp::RecurrentOp;
  std::string_view name() const override { return "recurrent_backward"; }
  TuningHints tuning(const Specs& inputs) const override {
    // dy, and y, gates and cells as far as they are there.
    if (lstm()) return tuned(inputs, {0, 3, 4}, 6);
    return gru() ? tuned(inputs, {0, 2, 3, 4}, 6) : tuned(inputs, {0, 2}, 3);
  }

  Specs infer(const Specs& inputs) const override {
    const auto& y = inputs[0].shape;
    const Spec gates{y.with(2, gate_count(kind_.cell) * y[2]), computed_in(inputs[0].dtype)};
    Specs result{gates, inputs[1]};
    if (lstm()) result.push_back(inputs[1]);
    if (gru()) result.push_back(gates);
    return result;
  }

  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    const auto first = Node::next_sequence();
    const auto composed = recur_backward_composed(kind_, structured(inputs));
    return gradients_through(list_of({composed.gates, composed.h0, composed.c0, gru() ? composed.product : Tensor{}}), gradients,
                             inputs, first);
  }

  void lower(exec::Recorder& recorder) const override {
    RecurrentProblem p;
    p.kind = kind_;
    p.backward = true;
    const auto& shape = recorder.spec(recorder.input(0)).shape;
    p.steps = shape[0];
    p.batch = shape[1];
    p.hidden = shape[2];
    if (p.batch == 0) return;
    std::size_t next = 0;
    const auto take = [&] { return recorder.input(next++); };
    p.dy = take();
    p.dh = take();
    if (lstm()) p.dc = take();
    if (!lstm()) p.y = take();
    if (gated()) {
      p.gates = take();
      p.cells = take();
    }
    if (gru()) p.h0 = take();
    if (lstm()) p.c0 = take();
    p.weight = take();
    if (lengths_) p.lengths = take();
    p.dgates = recorder.output(0);
    p.dh0 = recorder.output(1);
    if (lstm()) p.dc0 = recorder.output(2);
    if (gru()) p.dproduct = recorder.output(2);
    recurrent_solvers().lower(p, recorder.device(), recorder);
  }

  Tensors flat(const RecurrenceGradientInputs& in) const {
    return list_of({in.dy, in.dh, in.dc, lstm() ? Tensor{} : in.y, gated() ? in.gates : Tensor{}, gated() ? in.cells : Tensor{},
                    gru() ? in.h0 : Tensor{}, lstm() ? in.c0 : Tensor{}, in.weight_hh, in.lengths});
  }

 private:
  RecurrenceGradientInputs structured(const Tensors& list) const {
    RecurrenceGradientInputs in;
    std::size_t next = 0;
    const auto take = [&](bool there) { return there ? list[next++] : Tensor{}; };
    in.dy = take(true);
    in.dh = take(true);
    in.dc = take(lstm());
    in.y = take(!lstm());
    in.gates = take(gated());
    in.cells = take(gated());
    in.h0 = take(gru());
    in.c0 = take(lstm());
    in.weight_hh = take(true);
    in.lengths = take(lengths_);
    return in;
  }
};

/// Inputs: gates, h0, c0 (LSTM), weight_hh, bias_hn (GRU), lengths. Outputs: y, h, and of an LSTM c, gates, cells, of a GRU gates
/// and cells.
class Recurrent : public RecurrentOp {
 public:
  using RecurrentOp::RecurrentOp;
  std::string_view name() const override { return "recurrent"; }
  TuningHints tuning(const Specs& inputs) const override { return tuned(inputs, {0}, lstm() ? 3 : 2); }
  Precision precision() const override { return Precision::full; }

  Specs infer(const Specs& inputs) const override {
    const auto& gates = inputs[0].shape;
    const auto sequence = Spec{gates.with(2, gates[2] / gate_count(kind_.cell)), computed_in(inputs[0].dtype)};
    Specs result{sequence, inputs[1]};
    if (lstm()) result.push_back(inputs[1]);
    if (gated()) {
      result.push_back(inputs[0]);
      result.push_back(sequence);
    }
    return result;
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    const auto in = structured(inputs);
    const auto out = results(outputs), arrived = results(gradients);
    if (arrived.gates.defined() || arrived.cells.defined()) {
      // They are read by the gradient only: this is a gradient of it.
      const auto first = Node::next_sequence();
      const auto composed = recur_composed(kind_, in);
      return gradients_through(flat(composed), gradients, inputs, first);
    }
    RecurrenceGradientInputs read{.dy = or_zeros(arrived.y, out.y),
                                  .dh = or_zeros(arrived.h, out.h),
                                  .dc = lstm() ? or_zeros(arrived.c, out.c) : Tensor{},
                                  .y = out.y,
                                  .gates = out.gates,
                                  .cells = out.cells,
                                  .h0 = in.h0,
                                  .c0 = in.c0,
                                  .weight_hh = in.weight_hh,
                                  .lengths = in.lengths};
    const auto op = std::make_shared<RecurrentBackward>(kind_, lengths_);
    const auto d = apply_all(op, op->flat(read));
    const Tensor product = gru() ? d[2] : d[0];
    Tensors result{d[0], d[1]};
    if (lstm()) result.push_back(d[2]);
    result.push_back(weight_gradient(product, out.y, in));
    if (gru()) {
      const auto hidden = in.bias_hn.size(0);
      result.push_back(sum(slice(product, 2, 2 * hidden, 3 * hidden), {0, 1}));
    }
    if (lengths_) result.emplace_back();
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    RecurrentProblem p;
    p.kind = kind_;
    const auto& shape = recorder.spec(recorder.output(0)).shape;
    p.steps = shape[0];
    p.batch = shape[1];
    p.hidden = shape[2];
    if (p.batch == 0) return;
    std::size_t next = 0;
    const auto take = [&] { return recorder.input(next++); };
    p.x = take();
    p.h0 = take();
    if (lstm()) p.c0 = take();
    p.weight = take();
    if (gru()) p.bias = take();
    if (lengths_) p.lengths = take();
    next = 0;
    const auto give = [&] { return recorder.output(next++); };
    p.y = give();
    p.h = give();
    if (lstm()) p.c = give();
    if (gated()) {
      p.gates = give();
      p.cells = give();
    }
    recurrent_solvers().lower(p, recorder.device(), recorder);
  }

  /// The outputs by name.
  RecurrenceOutputs results(const Tensors& list) const {
    RecurrenceOutputs out;
    std::size_t next = 0;
    const auto take = [&](bool there) { return there ? list[next++] : Tensor{}; };
    out.y = take(true);
    out.h = take(true);
    out.c = take(lstm());
    out.gates = take(gated());
    out.cells = take(gated());
    return out;
  }

 private:
  RecurrenceInputs structured(const Tensors& list) const {
    RecurrenceInputs in;
    std::size_t next = 0;
    const auto take = [&](bool there) { return there ? list[next++] : Tensor{}; };
    in.gates = take(true);
    in.h0 = take(true);
    in.c0 = take(lstm());
    in.weight_hh = take(true);
    in.bias_hn = take(gru());
    in.lengths = take(lengths_);
    return in;
  }
  Tensors flat(const RecurrenceOutputs& out) const {
    return list_of({out.y, out.h, out.c, gated() ? out.gates : Tensor{}, gated() ? out.cells : Tensor{}});
  }

  /// The gradient of weight_hh: of all steps but the first one product with the states before them, which y has.
  Tensor weight_gradient(const Tensor& product, const Tensor& y, const RecurrenceInputs& in) const {
    const auto steps = y.size(0), batch = y.size(1);
    const auto rows = [&](const Tensor& x, std::int64_t begin, std::int64_t end) {
      return reshape(slice(x, 0, begin, end), Shape{(end - begin) * batch, x.size(2)});
    };
    const auto times = [](const Tensor& a, const Tensor& b) { return matmul(a, b, {.transpose_a = true}); };
    const auto begin = kind_.reverse ? steps - 1 : 0;
    Tensor first = rows(product, begin, begin + 1);
    if (kind_.reverse && in.lengths.defined()) {
      // Each sequence begins elsewhere; y is 0 behind it.
      const auto last = minimum(in.lengths, Tensor::scalar(static_cast<double>(steps), in.lengths.dtype())) - 1.0;
      const auto at = eq(unsqueeze(arange(steps, 0, 1, in.lengths.dtype()), 1), last);
      first = sum(where(unsqueeze(at, 2), product, Tensor::scalar(0, product.dtype())), {0});
    }
    const Tensor result = times(first, in.h0);
    if (steps == 1) return result;
    return result + (kind_.reverse ? times(rows(product, 0, steps - 1), rows(y, 1, steps))
                                   : times(rows(product, 1, steps), rows(y, 0, steps - 1)));
  }
};

}  // namespace

RecurrenceOutputs recur(const Recurrence& kind, const RecurrenceInputs& in) {
  // A projection is a product within each step.
  if (in.weight_hr.defined()) return recur_composed(kind, in);
  const auto op = std::make_shared<Recurrent>(kind, in.lengths.defined());
  return op->results(apply_all(op, list_of({in.gates, in.h0, in.c0, in.weight_hh, in.bias_hn, in.lengths})));
}

}  // namespace clnet::ops
