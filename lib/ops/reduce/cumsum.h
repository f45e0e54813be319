// The running sum's problem, and its solver for GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::ops {

/// Lines of `length` elements, `inner` apart.
struct CumsumProblem {
  exec::Ref x, y;
  std::int64_t lines = 0, length = 0, inner = 1;
  bool backwards = false;
  bool whole = false;  ///< of i64
};

std::optional<std::string> rejects_cumsum_gpu(const CumsumProblem& p, const DeviceInfo& device);
std::optional<std::string> declines_cumsum_gpu(const CumsumProblem& p, const DeviceInfo& device);
std::vector<exec::Config> configs_cumsum_gpu(const CumsumProblem& p, const DeviceInfo& device);
void lower_cumsum_gpu(const CumsumProblem& p, exec::Recorder& recorder);

}  // namespace clnet::ops
