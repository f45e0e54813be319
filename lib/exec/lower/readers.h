// The readers of a value in a plan, and the lifetime of its prepacked values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/exec/collect/subgraph.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Counts the readers of a value, by operation name. It counts at the first request for a name, as most are never requested.
class Readers {
 public:
  /// The subgraph must outlive it.
  explicit Readers(const Subgraph& graph) : graph_(graph) {}

  EqualReaders of(const Node& node, std::size_t input);
  Packed packed(const Node& node);

 private:
  struct Of {
    std::int64_t all = 0;
    std::map<std::string, std::int64_t> alike;
  };
  std::vector<Of> count(std::string_view op) const;

  const Subgraph& graph_;
  std::map<std::string, std::vector<Of>> by_op_;  ///< by value
};

}  // namespace clnet::exec
