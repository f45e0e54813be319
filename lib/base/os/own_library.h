// Where the code that is running lies.
#pragma once

#include <filesystem>

namespace clnet::os {

/// The whole path of the file with this code: the library, or the program that has it inside. Empty where it is not known.
std::filesystem::path own_library();

}  // namespace clnet::os
