// The folder of PoCL's own cache: its place and its faults.
#pragma once

#include <optional>
#include <string>

namespace clnet::pocl {

/// The folder of PoCL's compiled kernels; nothing where it keeps none.
std::optional<std::string> cache_folder();

/// Why PoCL's devices cannot be used, or empty. PoCL offers them all the same, and then fails at the first program without a
/// reason.
std::string unusable_cache();
/// Why PoCL may have no device, as the end of a sentence; else empty. Creates the folder, as PoCL does.
std::string no_device_without_cache();

}  // namespace clnet::pocl
