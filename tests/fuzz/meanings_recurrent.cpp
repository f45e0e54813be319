// What the steps of a recurrence mean, with their gradient.
#include "tests/fuzz/interpret.h"
#include "tests/reference/recurrent/recurrent.h"

namespace clnet::fuzz {

namespace reference = testing::reference;

namespace {

std::string cell_of(const Call& call) {
  for (const auto& [name, value] : call.node.op->fields())
    if (name == "cell") return std::get<std::string>(value);
  return {};
}

/// Takes a call's inputs one after the other.
struct Inputs {
  const Call& call;
  std::size_t next = 0;
  const Array* take(bool there = true) { return there ? &call.in[next++] : nullptr; }
};

/// Outputs: y, h, and of an LSTM c, gates, cells, of a GRU gates and cells.
Arrays recurrent(const Call& call) {
  const auto cell = cell_of(call);
  const bool lstm = cell == "lstm", gru = cell == "gru";
  Inputs in{call};
  reference::RecurrenceArrays arrays{cell, call.flag("reverse")};
  arrays.gates = in.take();
  arrays.h0 = in.take();
  arrays.c0 = in.take(lstm);
  arrays.weight_hh = in.take();
  arrays.bias_hn = in.take(gru);
  arrays.lengths = in.take(call.flag("lengths"));
  auto result = reference::recurrence(arrays);
  Arrays outputs{std::move(result.y), std::move(result.h)};
  if (lstm) outputs.push_back(std::move(result.c));
  if (lstm || gru) {
    outputs.push_back(std::move(result.gates));
    outputs.push_back(std::move(result.cells));
  }
  return outputs;
}

/// Outputs: the gradients of the gates, of h0, of an LSTM's c0, and of a GRU's product of weight_hh and h.
Arrays recurrent_backward(const Call& call) {
  const auto cell = cell_of(call);
  const bool lstm = cell == "lstm", gru = cell == "gru", reverse = call.flag("reverse");
  Inputs in{call};
  const auto *dy = in.take(), *dh = in.take(), *dc = in.take(lstm), *y = in.take(!lstm), *gates = in.take(lstm || gru),
             *cells = in.take(lstm || gru), *h0 = in.take(gru), *c0 = in.take(lstm), *weight = in.take(),
             *lengths = in.take(call.flag("lengths"));
  const auto steps = dy->size(0), batch = dy->size(1), hidden = dy->size(2), width = weight->size(0);
  Array dgates({steps, batch, width}), dproduct(dgates.shape), dh0(dh->shape), dc0(dh->shape);
  const auto derivative = [](double s) { return s * (1 - s); };
  for (std::int64_t n = 0; n < batch; ++n) {
    const auto length = lengths ? std::clamp<std::int64_t>(static_cast<std::int64_t>((*lengths)[n]), 0, steps) : steps;
    std::vector<double> d(static_cast<std::size_t>(hidden)), dcell(d.size());
    for (std::int64_t i = 0; i < hidden; ++i) {
      d[static_cast<std::size_t>(i)] = dh->at({n, i});
      if (lstm) dcell[static_cast<std::size_t>(i)] = dc->at({n, i});
    }
    for (std::int64_t k = length - 1; k >= 0; --k) {
      const auto t = reverse ? length - 1 - k : k, prior = reverse ? t + 1 : t - 1;
      for (std::int64_t i = 0; i < hidden; ++i) {
        double &mine = d[static_cast<std::size_t>(i)], &cell_gradient = dcell[static_cast<std::size_t>(i)];
        const double g = mine + dy->at({t, n, i});
        const auto gate = [&](std::int64_t which) { return gates->at({t, n, which * hidden + i}); };
        const auto put = [&](std::int64_t which, double of_gate, double of_product) {
          dgates.at({t, n, which * hidden + i}) = of_gate;
          dproduct.at({t, n, which * hidden + i}) = of_product;
        };
        mine = 0;
        if (lstm) {
          const double c = std::tanh(cells->at({t, n, i})), before = k == 0 ? c0->at({n, i}) : cells->at({prior, n, i});
          const double at_c = cell_gradient + g * gate(3) * (1 - c * c);
          const double of_gates[] = {at_c * gate(2) * derivative(gate(0)), at_c * before * derivative(gate(1)),
                                     at_c * gate(0) * (1 - gate(2) * gate(2)), g * c * derivative(gate(3))};
          for (std::int64_t which = 0; which < 4; ++which) put(which, of_gates[which], of_gates[which]);
          cell_gradient = at_c * gate(1);
        } else if (gru) {
          const double before = k == 0 ? h0->at({n, i}) : y->at({prior, n, i});
          const double fresh = g * (1 - gate(1)) * (1 - gate(2) * gate(2)),
                       r = fresh * cells->at({t, n, i}) * derivative(gate(0)), z = g * (before - gate(2)) * derivative(gate(1));
          put(0, r, r);
          put(1, z, z);
          put(2, fresh, fresh * gate(0));
          mine = g * gate(1);
        } else {
          const double h = y->at({t, n, i}), of_gate = cell == "relu" ? (h > 0 ? g : 0) : g * (1 - h * h);
          put(0, of_gate, of_gate);
        }
      }
      for (std::int64_t i = 0; i < hidden; ++i)
        for (std::int64_t j = 0; j < width; ++j) d[static_cast<std::size_t>(i)] += dproduct.at({t, n, j}) * weight->at({j, i});
    }
    for (std::int64_t i = 0; i < hidden; ++i) {
      dh0.at({n, i}) = d[static_cast<std::size_t>(i)];
      dc0.at({n, i}) = dcell[static_cast<std::size_t>(i)];
    }
  }
  Arrays outputs{std::move(dgates), std::move(dh0)};
  if (lstm) outputs.push_back(std::move(dc0));
  if (gru) outputs.push_back(std::move(dproduct));
  return outputs;
}

Arrays unstack(const Call& call) {
  const auto& x = call.in[0];
  const auto count = x.size(1) * x.size(2);
  Arrays steps(static_cast<std::size_t>(x.size(0)), Array({x.size(1), x.size(2)}));
  for (std::int64_t i = 0; i < x.numel(); ++i) steps[static_cast<std::size_t>(i / count)][i % count] = x[i];
  return steps;
}

}  // namespace

Meanings recurrent_meanings() {
  return {
      {"unstack", {unstack, true}}, {"recurrent", {recurrent, false, 4}}, {"recurrent_backward", {recurrent_backward, false, 4}}};
}

}  // namespace clnet::fuzz
