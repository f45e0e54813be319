// Who reads a value in a plan, and how long what is packed of it serves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "clnet/tensor.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Counts what reads a value, the first time that an operation of a name asks, as most never do.
class Readers {
 public:
  explicit Readers(std::span<const std::shared_ptr<Node>> nodes) : nodes_(nodes) {}

  Reuse of(const Node& node, std::size_t input);
  Packed packed(const Node& node);

 private:
  using Key = std::pair<const Node*, int>;
  struct Of {
    std::int64_t all = 0;
    std::map<std::string, std::int64_t> alike;
  };
  static Key key(const Tensor& tensor) { return {node_of(tensor).get(), output_of(tensor)}; }
  void count(std::string_view op, std::map<Key, Of>& by_value) const;

  std::span<const std::shared_ptr<Node>> nodes_;
  std::map<std::string, std::map<Key, Of>> by_op_;
};

}  // namespace clnet::exec
