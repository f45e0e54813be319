// A text that is made up, for models to learn.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace clnet::test {

/// Sentences of a few words; always the same ones.
inline std::string sentences(std::size_t characters) {
  constexpr std::array who{"the cat ", "a dog ", "my bird "}, does{"sees ", "likes ", "hears "},
      what{"the sea.\n", "a song.\n", "you.\n"};
  std::uint32_t state = 1;
  const auto pick = [&](const auto& words) { return words[((state = state * 1664525 + 1013904223) >> 16) % words.size()]; };
  std::string text;
  while (text.size() < characters) {
    text += pick(who);
    text += pick(does);
    text += pick(what);
  }
  text.resize(characters);
  return text;
}

}  // namespace clnet::test
