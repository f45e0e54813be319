// The ways in which a program is carried out. Most are environment variables that the library reads before main: the tool starts
// itself again with them.
#pragma once

#include <string>

namespace clnet::fuzz {

/// "plan, eager, ...".
std::string mode_names();
/// Whether this process is in that mode; when it is not, the process begins anew in it and does not return. Prints and returns
/// false for a mode that does not exist.
bool enter_mode(const std::string& mode, char** argv);

}  // namespace clnet::fuzz
