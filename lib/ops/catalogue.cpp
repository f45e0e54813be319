#include "lib/ops/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/error.h"

namespace clnet::ops {

const std::vector<Operation>& catalogue() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> rows;
    for (auto* family : {attention_operations, conv_operations, elementwise_operations, elementwise_rows, image_operations,
                         index_operations, loss_operations, matmul_operations, norm_operations, pool_operations,
                         random_operations, recurrent_operations, reduce_operations, shape_operations}) {
      const auto part = family();
      rows.insert(rows.end(), part.begin(), part.end());
    }
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return rows;
  }();
  return all;
}

const Operation& catalogued(std::string_view name) {
  const auto& all = catalogue();
  const auto found =
      std::lower_bound(all.begin(), all.end(), name, [](const auto& row, auto wanted) { return row.name < wanted; });
  if (found == all.end() || found->name != name) throw Error(fmt::format("the catalogue has no operation '{}'", name));
  return *found;
}

}  // namespace clnet::ops
