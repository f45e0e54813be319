// einsum() by its definition: one loop over all values of all letters. For equations without "...".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/cases/case.h"

namespace clnet::testing::reference {

/// `terms` names the operands' dimensions, `result` those of the result.
inline Array einsum(const std::vector<std::string>& terms, const std::string& result, const Arrays& in) {
  std::map<char, std::int64_t> extents;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      auto& extent = extents.try_emplace(terms[k][d], 1).first->second;
      extent = extent == 1 ? in[k].shape[static_cast<int>(d)] : extent;
    }
  std::map<char, std::int64_t> at;
  const auto place = [&](const std::string& letters, const Shape& shape) {
    std::int64_t linear = 0;
    for (std::size_t d = 0; d < letters.size(); ++d) {
      const auto extent = shape[static_cast<int>(d)];
      linear = linear * extent + (extent == 1 ? 0 : at[letters[d]]);
    }
    return linear;
  };
  std::vector<std::int64_t> to;
  for (char letter : result) to.push_back(extents[letter]);
  Array y{Shape(to)};
  std::int64_t count = 1;
  for (const auto& [letter, extent] : extents) count *= extent;
  for (std::int64_t i = 0; i < count; ++i) {
    auto rest = i;
    for (const auto& [letter, extent] : extents) {
      at[letter] = rest % extent;
      rest /= extent;
    }
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) product *= in[k][place(terms[k], in[k].shape)];
    y[place(result, y.shape)] += product;
  }
  return y;
}

}  // namespace clnet::testing::reference
