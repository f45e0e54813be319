// The steps of a recurrence, forward or backward, and who computes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"
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
  bool lstm() const { return kind.cell == Cell::lstm; }
  bool gru() const { return kind.cell == Cell::gru; }
  bool gated() const { return lstm() || gru(); }
  /// Operations of a step's product.
  double flops() const { return 2.0 * static_cast<double>(batch) * static_cast<double>(width()) * static_cast<double>(hidden); }
  std::string text() const;
};

/// With the defines that kernels of recurrences follow.
exec::Launch& recurrent_launch(const RecurrentProblem& p, exec::Recorder& recorder, std::string_view program,
                               std::string_view function);

std::optional<std::string> rejects_recurrent_gpu(const RecurrentProblem& p, const DeviceInfo& device);
std::vector<exec::Config> configs_recurrent_gpu(const RecurrentProblem& p, const DeviceInfo& device);
void lower_recurrent_gpu(const RecurrentProblem& p, exec::Recorder& recorder);

const exec::SolverList<RecurrentProblem>& recurrent_solvers();

}  // namespace clnet::ops
