#include "lib/base/os/access.h"

#include <unistd.h>

namespace clnet::os {

bool may_write(const std::filesystem::path& path) { return ::access(path.c_str(), W_OK) == 0; }
bool may_run(const std::filesystem::path& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace clnet::os
