// The cases that headers of tests/cases register, on every solver.
#include <catch2/catch.hpp>

#include "lib/exec/choose/solver.h"
#include "lib/ops/catalogue.h"
#include "tests/all_cases.h"
#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

TEST_CASE("elementwise functions of the catalogue") { check(catalogued_cases()); }

TEST_CASE("registered cases") {
  REQUIRE_FALSE(registered_cases().empty());
  for (const auto& table : registered_cases()) {
    INFO(table.operation);
    const auto& operation = ops::catalogued(table.operation);
    const std::string solvers(operation.solvers.empty() ? operation.name : operation.solvers);
    check(table.cases(), exec::solver_names(solvers).empty() ? std::vector<std::string>{} : std::vector{solvers});
  }
}
