// Where the code that is running lies.
#pragma once

#include <filesystem>

namespace clnet::os {

/// The file with this code: the library, or the program that has it inside. Empty where the system does not tell.
std::filesystem::path own_library();

}  // namespace clnet::os
