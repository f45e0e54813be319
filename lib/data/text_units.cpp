#include "lib/data/text_units.h"

#include <algorithm>

namespace clnet::data {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '\''; }

/// 0 to 3: characters of one run.
int run_of(char c) { return is_blank(c) ? 0 : is_letter(c) ? 1 : is_digit(c) ? 2 : 3; }

/// The end of a character that begins at `at`.
std::size_t end_of_character(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t bytes = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
  if (at + bytes > text.size()) return at + 1;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return at + 1;
  return at + bytes;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = end_of_character(text, at);
    result.push_back(text.substr(at, end - at));
    at = end;
  }
  return result;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t at = 0; at < text.size();) {
    auto end = at + 1;
    if (in_word(text[at]))
      while (end < text.size() && in_word(text[end])) ++end;
    if (!is_blank(text[at])) result.push_back(text.substr(at, end - at));
    at = end;
  }
  return result;
}

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> result;
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += most_piece_bytes) result.push_back(text.substr(begin, std::min(most_piece_bytes, end - begin)));
  };
  for (std::size_t at = 0; at < text.size();) {
    auto begin = at;
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) {
      add(begin, at);
      break;
    }
    // The last space belongs to what follows it; another blank is a piece of its own.
    if (at > begin) {
      const auto last = at - 1;
      add(begin, last);
      begin = last;
      if (text[last] != ' ') {
        add(last, at);
        begin = at;
      }
    }
    const int run = run_of(text[at]);
    while (at < text.size() && run_of(text[at]) == run) ++at;
    add(begin, at);
  }
  return result;
}

}  // namespace clnet::data
