// clnet-info --prepare: compiling ahead.
#pragma once

#include <string>
#include <vector>

namespace clnet::tools {

/// Compiles what clnet-train's network of this name needs, or what a program does that is run with its arguments; says on stdout
/// what was new. The words are NETWORK, NETWORK:CxHxW or NETWORK:CxHxW:BATCH, or a program and its arguments. Returns the exit
/// code: 0, or the program's. Throws Error for a network that cannot be made so, and where there is no such program.
int prepare(const std::vector<std::string>& words);

}  // namespace clnet::tools
