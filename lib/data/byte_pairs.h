// Training of byte pair encoding.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace clnet::data {

/// Up to `most` merges, each of the most frequent pair of neighbours in the text's pieces, of equal ones that with the lower
/// numbers. They end where no pair comes `least` times.
std::vector<std::pair<std::int32_t, std::int32_t>> frequent_merges(std::string_view text, std::int64_t most, std::int64_t least);

}  // namespace clnet::data
