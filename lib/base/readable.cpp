#include "lib/base/readable.h"

#include <algorithm>

#include "lib/base/input_file.h"

namespace clnet {

std::string readable(std::string_view text) {
  const bool fits =
      text.size() <= 200 && std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return fits ? std::string(text) : in_quotes(text);
}

}  // namespace clnet
