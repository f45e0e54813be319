#pragma once
// The CLBlast library, where clnet was built with it (-DCLNET_CLBLAST).
#include <string>

#include "lib/exec/launch/recorder.h"
#include "lib/ops/matmul/matmul_solvers.h"

namespace clnet::ops {

/// As "1.5.2"; empty where clnet was built without CLBlast.
std::string clblast_version();

/// c = a * b, or c += a * b where there is a bias, which c then holds. Throws DeviceError.
void clblast_gemm(const MatmulProblem& problem, exec::HostContext& context);

}  // namespace clnet::ops
