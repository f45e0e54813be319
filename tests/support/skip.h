// Tests that leave something out say so, and why: each time as a warning, and once more, counted, at the end of the program.
#pragma once

#include <string>

namespace clnet::test {

/// Reports that `what` (this test, when empty) is left out, for a reason that is worded the same wherever it is the same.
void skip(const std::string& reason, const std::string& what = {});

}  // namespace clnet::test
