#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/support/skip.h"

namespace {

std::map<std::string, int> skipped;

}  // namespace

void clnet::test::skip(const std::string& reason, const std::string& what) {
  ++skipped[reason];
  WARN("skipped: " << what << (what.empty() ? "" : ": ") << reason);
}

int main(int argc, char** argv) {
  // An element that no kernel writes is then no number, and no test passes by leftovers.
  ::setenv("CLNET_POISON", "1", 0);
  // And no plan runs that the verifier has not seen.
  ::setenv("CLNET_VERIFY", "1", 0);
  // Most of the time goes into PoCL's compiling, a quarter of which it takes without optimisation.
  if (std::getenv("CLNET_TEST_PLAIN") && !std::getenv("CLNET_TEST_OPTIMIZED"))
    ::setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
  const int failed = Catch::Session().run(argc, argv);
  for (const auto& [reason, count] : skipped) std::cout << count << " skipped: " << reason << "\n";
  return failed;
}
