// The folder of PoCL's own cache: where it says that it is, and what is wrong with it.
#pragma once

#include <optional>
#include <string>

namespace clnet::pocl {

/// Where PoCL keeps what it compiled; nothing where it keeps nothing.
std::optional<std::string> cache_folder();

/// Why PoCL's devices cannot be used, or empty: it offers them all the same, and then fails over the first program without a
/// reason.
std::string unusable_cache();
/// Why PoCL may have no device, as the end of a sentence about that; else empty. Makes the folder, as PoCL does.
std::string no_device_without_cache();

}  // namespace clnet::pocl
