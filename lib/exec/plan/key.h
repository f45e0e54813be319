// The key of a plan: evaluations with one key share a plan.
#pragma once

#include <string>
#include <vector>

#include "lib/exec/collect/work.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

/// The structure of the work as text: operations with their fields, shapes and dtypes, inputs, host scalars, wanted values and
/// speculative outputs, and the options.
std::string plan_key(const Work& work, const Options& options);

/// The same for human readers: a line per leaf and operation.
std::vector<std::string> describe(const Work& work);

}  // namespace clnet::exec
