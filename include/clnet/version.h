// The version of the loaded library, which may be newer than these headers.
#pragma once

#include <string_view>

#include "clnet/export.h"

namespace clnet {

/// For example "0.1.0".
CLNET_API std::string_view version();

}  // namespace clnet
