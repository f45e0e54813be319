// A recurrence as graph: the meaning of the operation, and the way to its second derivatives.
#include <algorithm>
#include <vector>

#include "clnet/ops.h"
#include "lib/ops/recurrent/recurrence.h"
#include "lib/ops/shape/unstack.h"

namespace clnet::ops {

namespace {

/// Part `which` of `count` along the last dimension.
Tensor gate(const Tensor& all, std::int64_t which, std::int64_t count) {
  const auto width = all.size(-1) / count;
  return count == 1 ? all : slice(all, -1, which * width, (which + 1) * width);
}

/// Gives step t of {T, N, W}.
class TimeSteps {
 public:
  explicit TimeSteps(const Tensor& sequence) : steps_(sequence.defined() ? unstack(sequence) : Tensors{}) {}
  const Tensor& operator[](std::int64_t t) const { return steps_[static_cast<std::size_t>(t)]; }

 private:
  Tensors steps_;
};

}  // namespace

CellState one_step(Cell cell, const Tensor& gates, const Tensor& h, const Tensor& c, const RecurrenceInputs& weights) {
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
  const TimeSteps from_x(in.gates);
  std::vector<Tensor> y, gates, cells;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto t = recurrence.reverse ? steps - 1 - i : i;
    auto step = one_step(recurrence.cell, from_x[t], h, c, in);
    if (lengths.defined()) {
      const Tensor valid = greater(lengths, static_cast<double>(t)), none = Tensor::scalar(0, step.h.dtype());
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

RecurrenceGradients recur_backward_composed(const Recurrence& recurrence, const RecurrenceGradientInputs& in) {
  const auto cell = recurrence.cell;
  const bool lstm = cell == Cell::lstm, gru = cell == Cell::gru;
  const auto steps = in.dy.size(0);
  Tensor carry = in.dh, dc = in.dc, after;
  const TimeSteps all_dy(in.dy), all_y(in.y), all_gates(in.gates), all_cells(in.cells);
  Tensor lengths;
  if (in.lengths.defined()) lengths = unsqueeze(in.lengths, 1);
  std::vector<Tensor> gates(static_cast<std::size_t>(steps)), products(gates.size());
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto t = recurrence.reverse ? i : steps - 1 - i;
    // The state that the step began with.
    const auto before = [&](const TimeSteps& sequence, const Tensor& initial) {
      if (i == steps - 1) return initial;
      const Tensor& state = sequence[recurrence.reverse ? t + 1 : t - 1];
      if (!recurrence.reverse || !lengths.defined()) return state;
      return where(eq(lengths, static_cast<double>(t + 1)), initial, state);
    };
    const Tensor arrived = after.defined() ? carry + matmul(after, in.weight_hh) : carry;
    const Tensor d = arrived + all_dy[t];
    Tensor next_carry, next_dc, dgates, dproduct;
    if (lstm) {
      const Tensor& all = all_gates[t];
      const Tensor ct = tanh(all_cells[t]);
      const Tensor input = gate(all, 0, 4), forget = gate(all, 1, 4), g = gate(all, 2, 4), o = gate(all, 3, 4);
      const Tensor dcell = dc + d * o * (1.0 - square(ct));
      dgates = concat({dcell * g * input * (1.0 - input), dcell * before(all_cells, in.c0) * forget * (1.0 - forget),
                       dcell * input * (1.0 - square(g)), d * ct * o * (1.0 - o)},
                      1);
      next_dc = dcell * forget;
    } else if (gru) {
      const Tensor& all = all_gates[t];
      const Tensor r = gate(all, 0, 3), z = gate(all, 1, 3), n = gate(all, 2, 3);
      const Tensor dn = d * (1.0 - z) * (1.0 - square(n)), dr = dn * all_cells[t] * r * (1.0 - r);
      const Tensor dz = d * (before(all_y, in.h0) - n) * z * (1.0 - z);
      dgates = concat({dr, dz, dn}, 1);
      dproduct = concat({dr, dz, dn * r}, 1);
      next_carry = d * z;
    } else {
      const Tensor& y = all_y[t];
      dgates = cell == Cell::tanh ? d * (1.0 - square(y)) : where(greater(y, 0.0), d, Tensor::scalar(0, d.dtype()));
    }
    if (!gru) dproduct = dgates;
    if (!next_carry.defined()) next_carry = zeros_like(in.dh);
    if (lengths.defined()) {
      const Tensor valid = greater(lengths, static_cast<double>(t)), none = Tensor::scalar(0, dgates.dtype());
      dgates = where(valid, dgates, none);
      dproduct = gru ? where(valid, dproduct, none) : dgates;
      next_carry = where(valid, next_carry, arrived);
      if (lstm) next_dc = where(valid, next_dc, dc);
    }
    gates[static_cast<std::size_t>(t)] = dgates;
    products[static_cast<std::size_t>(t)] = dproduct;
    carry = next_carry;
    dc = next_dc;
    after = dproduct;
  }
  return {.gates = stack(gates), .h0 = carry + matmul(after, in.weight_hh), .c0 = dc, .product = stack(products)};
}

}  // namespace clnet::ops
