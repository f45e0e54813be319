// Check sums of checkpoints.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "clnet/io.h"

namespace clnet::io {

/// CRC-32 of everything in a checkpoint but itself: names, shapes, dtypes and values of all tensors and all metadata. It is the
/// metadata called `key`.
std::string checkpoint_checksum(const StateDict& tensors, const std::map<std::string, std::string>& metadata,
                                std::string_view key = "checksum");

}  // namespace clnet::io
