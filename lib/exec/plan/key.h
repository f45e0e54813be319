// What two evaluations must have in common to be served by one plan.
#pragma once

#include <string>
#include <vector>

#include "lib/exec/collect/work.h"
#include "lib/exec/options/options.h"

namespace clnet::exec {

/// The structure of the work: operations with their fields, shapes and dtypes, who reads whom, which leaves the host knows as
/// scalars, what is asked for and what is kept besides, and the options: equal strings, equal plans.
std::string plan_key(const Work& work, const Options& options);

/// The same for a reader: a line per leaf and operation.
std::vector<std::string> describe(const Work& work);

}  // namespace clnet::exec
