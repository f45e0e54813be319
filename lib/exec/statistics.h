// Counters of the executor, so that tests and reports can prove what was not done.
#pragma once

#include <cstdint>

namespace clnet::exec {

struct Statistics {
  std::uint64_t evaluations = 0;  ///< calls of eval() that found something to compute
  std::uint64_t operations = 0;   ///< nodes computed
  std::uint64_t kernels = 0;      ///< kernels launched
  std::uint64_t host_calls = 0;   ///< calls such as CLBlast's
  std::uint64_t plans_made = 0;   ///< evaluations of a structure that was not known
  std::uint64_t plans_reused = 0;
  std::uint64_t repeated = 0;  ///< nodes computed twice, in all evaluations, as there was no memory to keep their values
};

Statistics statistics();

}  // namespace clnet::exec
