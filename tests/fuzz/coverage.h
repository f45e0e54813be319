// Which pairs of operations met, how the second read the first, and in which dtype.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "clnet/tensor.h"

namespace clnet::fuzz {

class Coverage {
 public:
  /// Every edge of the graph behind the values: from an operation (views in between are a kind of edge) to its reader.
  void add(std::span<const Tensor> values);
  void add(const Coverage& other);
  /// A few lines: how many operations, pairs, pairs by alias and dtype.
  std::string summary() const;
  /// A line for each: "matmul -> add, view, f16: 12".
  std::string list() const;

 private:
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::int64_t> seen_;
};

}  // namespace clnet::fuzz
