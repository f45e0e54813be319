// How texts are cut: into characters, words, and the pieces in which byte pairs are merged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace clnet::data {

/// No piece, and so no merged token, is longer.
inline constexpr std::size_t most_piece_bytes = 64;

/// A to Z become a to z.
std::string lower_case(std::string_view text);
/// Characters of UTF-8, and single bytes where there are none.
std::vector<std::string_view> characters_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view text);
/// Together they are the text.
std::vector<std::string_view> pieces_of(std::string_view text);

}  // namespace clnet::data
