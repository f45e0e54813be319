// The steps of a recurrence, forward or backward, and who computes them.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/exec/choose/solver.h"
#include "lib/exec/record/recorder.h"
#include "lib/ops/recurrent/recurrence.h"

namespace clnet::ops {

/// Everything is f32 but lengths. What a cell does not have is not looked at: a GRU and an LSTM have gates and cells, an LSTM c.
struct RecurrentProblem {
  Recurrence kind;
  bool backward = false;
  std::int64_t steps = 0, batch = 0, hidden = 0;
  exec::Ref weight, h0, c0, y, gates, cells;
  std::optional<exec::Ref> lengths;
  exec::Ref x, bias, h, c;                           // forward
  exec::Ref dy, dh, dc, dgates, dh0, dc0, dproduct;  // backward

  std::int64_t width() const { return gate_count(kind.cell) * hidden; }
};

const exec::SolverList<RecurrentProblem>& recurrent_solvers();

}  // namespace clnet::ops
