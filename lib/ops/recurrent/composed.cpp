// A recurrence as graph: the meaning of the operation, and the way to its second derivatives.
#include <algorithm>
#include <vector>

#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/ops/recurrent/recurrence.h"

namespace clnet::ops {

namespace {

/// Part `which` of `count` along the last dimension.
Tensor gate(const Tensor& all, std::int64_t which, std::int64_t count) {
  const auto width = all.size(-1) / count;
  return count == 1 ? all : slice(all, -1, which * width, (which + 1) * width);
}

/// Step t of {T, N, ...}.
Tensor step_of(const Tensor& sequence, std::int64_t t) {
  return reshape(slice(sequence, 0, t, t + 1), Shape{sequence.size(1), sequence.size(2)});
}

}  // namespace

Step one_step(Cell cell, const Tensor& gates, const Tensor& h, const Tensor& c, const RecurrenceInputs& weights) {
  const Tensor product = matmul(h, weights.weight_hh, {.transpose_b = true});
  if (cell == Cell::tanh || cell == Cell::relu) {
    const Tensor next = cell == Cell::tanh ? tanh(gates + product) : relu(gates + product);
    return {.h = next, .gates = next};
  }
  if (cell == Cell::gru) {
    const auto sum = [&](std::int64_t which) { return gate(gates, which, 3) + gate(product, which, 3); };
    const Tensor r = sigmoid(sum(0)), z = sigmoid(sum(1)), q = gate(product, 2, 3) + weights.bias_hn;
    const Tensor n = tanh(gate(gates, 2, 3) + r * q);
    return {.h = n + z * (h - n), .gates = concat({r, z, n}, 1), .cells = q};
  }
  const Tensor all = gates + product;
  const Tensor i = sigmoid(gate(all, 0, 4)), f = sigmoid(gate(all, 1, 4)), g = tanh(gate(all, 2, 4)),
               o = sigmoid(gate(all, 3, 4));
  const Tensor next = f * c + i * g;
  const Tensor full = o * tanh(next);
  return {.h = weights.weight_hr.defined() ? matmul(full, weights.weight_hr, {.transpose_b = true}) : full,
          .c = next,
          .gates = concat({i, f, g, o}, 1),
          .cells = next};
}

RecurrenceOutputs recur_composed(const Recurrence& recurrence, const RecurrenceInputs& in) {
  const auto steps = in.gates.size(0);
  const bool saves = recurrence.cell == Cell::lstm || recurrence.cell == Cell::gru;
  Tensor h = in.h0, c = in.c0;
  Tensor lengths;
  if (in.lengths.defined()) lengths = unsqueeze(in.lengths, 1);
  std::vector<Tensor> y, gates, cells;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto t = recurrence.reverse ? steps - 1 - i : i;
    auto step = one_step(recurrence.cell, step_of(in.gates, t), h, c, in);
    if (lengths.defined()) {
      const Tensor valid = greater(lengths, static_cast<double>(t)), none = Tensor::scalar(0);
      y.push_back(where(valid, step.h, none));
      h = where(valid, step.h, h);
      if (c.defined()) c = where(valid, step.c, c);
      gates.push_back(where(valid, step.gates, none));
      if (saves) cells.push_back(where(valid, step.cells, none));
    } else {
      y.push_back(step.h);
      h = step.h;
      c = step.c;
      gates.push_back(step.gates);
      if (saves) cells.push_back(step.cells);
    }
  }
  const auto sequence = [&](std::vector<Tensor>& list) {
    if (recurrence.reverse) std::reverse(list.begin(), list.end());
    return stack(list);
  };
  RecurrenceOutputs result{.y = sequence(y), .h = h, .c = c, .gates = sequence(gates)};
  if (saves) result.cells = sequence(cells);
  return result;
}

}  // namespace clnet::ops
