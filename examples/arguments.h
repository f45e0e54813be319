// Arguments of the examples.
#ifndef CLNET_EXAMPLES_ARGUMENTS_H
#define CLNET_EXAMPLES_ARGUMENTS_H

#include <clnet/clnet.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

/// Argument `index` as a number from 1 to a million, or `otherwise` where there is none. Throws Error, with the argument's name,
/// for anything else.
inline std::int64_t number_argument(int argc, char** argv, int index, const std::string& name, std::int64_t otherwise) {
  if (index >= argc) return otherwise;
  const std::string_view text = argv[index];
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > 1'000'000)
    throw clnet::Error(name + ": expected a number from 1 to 1000000, got \"" + std::string(text) + "\"");
  return number;
}

#endif
