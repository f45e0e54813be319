#include "clnet/nn/containers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clnet/error.h"

namespace clnet::nn::detail {

std::size_t index_of_key(const std::vector<std::string>& keys, const std::string& key) {
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found == keys.end())
    throw Error(
        fmt::format("ModuleDict: there is no layer '{}'; there {}", key,
                    keys.empty() ? "are none" : fmt::format("{} {}", keys.size() == 1 ? "is" : "are", fmt::join(keys, ", "))));
  return static_cast<std::size_t>(found - keys.begin());
}

void require_new_key(const std::vector<std::string>& keys, const std::string& key) {
  if (std::find(keys.begin(), keys.end(), key) != keys.end())
    throw Error(fmt::format("ModuleDict: there is a layer '{}' already; replace() changes it", key));
}

}  // namespace clnet::nn::detail
