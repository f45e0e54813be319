// The ways in which a program is carried out. Most are environment variables that the library reads before main: the tool starts
// itself again with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace clnet::fuzz {

/// "plan, eager, ...".
std::string mode_names();
/// Whether this process is in that mode; when it is not, the process begins anew in it and does not return. Prints and returns
/// false for a mode that does not exist.
bool enter_mode(const std::string& mode, char** argv);
/// The digests by seed that a process of the same tool writes for these seeds in another mode than its `own`; empty when it
/// fails. It has this one's environment, but for what the own mode set.
std::map<std::uint64_t, std::uint64_t> digests_of(const std::string& mode, const std::string& own, std::uint64_t seed,
                                                  std::uint64_t count, const std::vector<std::string>& more);

}  // namespace clnet::fuzz
