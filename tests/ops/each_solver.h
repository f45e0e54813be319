// Tests beside the case tables that hold for every solver of an operation.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "clnet/error.h"
#include "lib/exec/choose/solver.h"
#include "tests/support/skip.h"

namespace clnet::testing {

/// Runs `test` with each solver of `op` forced, except those that refuse `probe`, a small evaluation.
template <class Probe, class Test>
void with_each_solver(const std::string& op, const Probe& probe, const Test& test) {
  const auto names = exec::solver_names(op);
  REQUIRE_FALSE(names.empty());
  for (const auto& name : names) {
    INFO(op << ":" << name);
    const exec::ForceSolver force(op, name);
    try {
      probe();
    } catch (const Unsupported& refusal) {
      clnet::test::skip(refusal.what());
      continue;
    }
    test();
  }
}

}  // namespace clnet::testing
