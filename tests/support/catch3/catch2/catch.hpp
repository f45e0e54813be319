// Catch2 3 (Debian 13) under the names of Catch2 2 (Debian 12), which the tests use. tests/CMakeLists.txt adds this folder where
// version 3 is installed, which has no header of this name.
#pragma once

#include <catch2/catch_approx.hpp>
#include <catch2/catch_message.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_predicate.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <catch2/matchers/catch_matchers_vector.hpp>

namespace Catch {
namespace Matchers {
inline StringContainsMatcher Contains(const std::string& part, CaseSensitive sensitivity = CaseSensitive::Yes) {
  return ContainsSubstring(part, sensitivity);
}
}  // namespace Matchers
using namespace Matchers;
}  // namespace Catch

using Catch::Approx;
