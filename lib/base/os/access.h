// What this process may do with files, as far as the system knows before it is tried.
#pragma once

#include <filesystem>

namespace clnet::os {

bool may_write(const std::filesystem::path& path);
bool may_run(const std::filesystem::path& path);

}  // namespace clnet::os
