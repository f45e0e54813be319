#include "tests/cases/reduce/cumsum.h"

#include <catch2/catch.hpp>

#include "tests/ops/check.h"

using namespace clnet;
using namespace clnet::testing;

TEST_CASE("cumsum") { check(cumsum_cases(), {"cumsum"}); }

TEST_CASE("cumsum refuses wrong dimensions") { CHECK_THROWS_AS(cumsum(zeros({2, 3}), 2), ShapeError); }
