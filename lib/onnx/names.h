// Names, each once, and those of the metadata that save() writes for load(): which initializers are parameters, and buffers.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

namespace clnet::onnx {

constexpr const char *parameters_key = "clnet.parameters", *buffers_key = "clnet.buffers";

class UniqueNames {
 public:
  /// Whether nothing had the name before.
  bool take(const std::string& name) { return taken_.insert(name).second; }
  /// Takes the name, or where it is taken the first free one with a number behind: "name_1". The number 0 is an underline alone.
  std::string numbered(const std::string& name, int first) {
    if (take(name)) return name;
    for (auto& next = next_.try_emplace(name, first).first->second;; ++next)
      if (auto other = next == 0 ? name + "_" : fmt::format("{}_{}", name, next); take(other)) return other;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> next_;  ///< by name, which number comes next
};

}  // namespace clnet::onnx
