// The machine that this process runs on, and an end without exit handlers.
#pragma once

#include <string>

namespace clnet::os {

/// The name of the machine; "unknown" where the system tells none.
std::string host_name();

/// Ends the process at once. Exit handlers do not run; streams of the C library are flushed.
[[noreturn]] void end_now(int code);

}  // namespace clnet::os
