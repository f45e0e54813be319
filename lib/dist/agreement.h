// What ranks must share before their first step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clnet/dist.h"

namespace clnet::dist {

/// One line about the first item that differs among ranks, by their items; nothing where all agree.
std::optional<std::string> disagreement(std::span<const std::vector<Item>> ranks);

/// The texts of all ranks. All of them call it. Throws Error for a text above 64 KiB.
std::vector<std::string> gather_texts(const std::string& text, const Group& group);

}  // namespace clnet::dist
