#include "clnet/nn/containers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "clnet/error.h"
#include "lib/nn/module_state.h"

namespace clnet::nn::detail {

Container::Container() { state_->container = true; }

void fail_without_key(const std::vector<std::string>& keys, const std::string& key) {
  throw Error(
      fmt::format("ModuleDict: there is no layer '{}'; there {}", key,
                  keys.empty() ? "are none" : fmt::format("{} {}", keys.size() == 1 ? "is" : "are", fmt::join(keys, ", "))));
}

void fail_at_old_key(const std::string& key) {
  throw Error(fmt::format("ModuleDict: there is a layer '{}' already; replace() changes it", key));
}

}  // namespace clnet::nn::detail
