// einsum: permutations, diagonals, sums and products of two at a time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/as_f32.h"
#include "lib/ops/elementwise/elementwise.h"

namespace clnet {

namespace {

/// A dimension's letter; those of "..." are the negative numbers, -1 being the last one.
using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

/// An operand and what its dimensions are called.
struct Term {
  Tensor x;
  Labels labels;
};

class Equation {
 public:
  Equation(std::string_view text, const std::vector<Tensor>& operands) : text_(text) {
    std::string letters;
    for (char c : text)
      if (c != ' ') letters += c;
    const auto arrow = letters.find("->");
    const std::string left = letters.substr(0, arrow);
    std::vector<std::string> parts{""};
    for (char c : left)
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    if (parts.size() != operands.size()) fail(fmt::format("it names {} operands, {} were given", parts.size(), operands.size()));
    int dots = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto named = static_cast<int>(std::count_if(parts[i].begin(), parts[i].end(), [](char c) { return c != '.'; }));
      if (has_dots(parts[i])) dots = std::max(dots, operands[i].rank() - named);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto labels = parsed(parts[i], operands[i].rank(), fmt::format("operand {}", i));
      for (int d = 0; d < operands[i].rank(); ++d) {
        const int label = labels[static_cast<std::size_t>(d)];
        // Only between operands does an extent of 1 broadcast.
        const int first = static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
        if (operands[i].size(first) != operands[i].size(d)) unequal(label, operands[i].size(first), operands[i].size(d));
        add(label, operands[i].size(d));
      }
      terms.push_back({operands[i], labels});
    }
    if (arrow == std::string::npos) {
      for (int d = -dots; d < 0; ++d) result.push_back(d);
      for (const auto& [label, extent] : extents_)
        if (label > 0 && std::count(left.begin(), left.end(), static_cast<char>(label)) == 1) result.push_back(label);
      return;
    }
    const std::string right = letters.substr(arrow + 2);
    const auto named = static_cast<int>(std::count_if(right.begin(), right.end(), [](char c) { return c != '.'; }));
    result = parsed(right, has_dots(right) ? named + dots : named, "the result");
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!extents_.count(result[i])) fail(fmt::format("'{}' of the result is in no operand", static_cast<char>(result[i])));
      if (std::count(result.begin(), result.end(), result[i]) > 1)
        fail(fmt::format("'{}' is twice in the result", static_cast<char>(result[i])));
    }
  }

  std::int64_t extent(int label) const { return extents_.at(label); }

  std::vector<Term> terms;
  Labels result;

 private:
  [[noreturn]] void fail(const std::string& why) const { throw Error(fmt::format("einsum: '{}': {}", text_, why)); }

  static bool has_dots(const std::string& part) { return part.find('.') != std::string::npos; }

  /// The labels of a part of the equation for so many dimensions.
  Labels parsed(const std::string& part, int rank, const std::string& whose) const {
    Labels labels;
    const auto dots = part.find("...");
    std::string named = part;
    if (dots != std::string::npos) named.erase(dots, 3);
    if (!std::all_of(named.begin(), named.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }))
      fail(fmt::format("'{}' of {} has something other than letters and one '...'", part, whose));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      if (i == dots) {
        const auto rest = rank - static_cast<int>(named.size());
        if (rest < 0) wrong_rank(part, rank, whose);
        for (int d = -rest; d < 0; ++d) labels.push_back(d);
        i += 2;
      } else {
        labels.push_back(c);
      }
    }
    if (static_cast<int>(labels.size()) != rank) wrong_rank(part, rank, whose);
    return labels;
  }

  [[noreturn]] void wrong_rank(const std::string& part, int rank, const std::string& whose) const {
    throw ShapeError(fmt::format("einsum: '{}': '{}' does not name the {} dimensions of {}", text_, part, rank, whose));
  }

  void add(int label, std::int64_t extent) {
    auto& known = extents_.try_emplace(label, 1).first->second;
    if (known != extent && known != 1 && extent != 1) unequal(label, known, extent);
    if (extent != 1) known = extent;
  }

  [[noreturn]] void unequal(int label, std::int64_t one, std::int64_t other) const {
    throw ShapeError(fmt::format("einsum: '{}': {} has extents {} and {}", text_,
                                 label < 0 ? std::string("'...'") : fmt::format("'{}'", static_cast<char>(label)), one, other));
  }

  std::string text_;
  std::map<int, std::int64_t> extents_;
};

/// Takes the diagonal of each label that comes twice.
void take_diagonals(Term& term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i)
    for (std::size_t j = i + 1; j < term.labels.size();) {
      if (term.labels[j] != term.labels[i]) {
        ++j;
        continue;
      }
      // The diagonal comes last, and goes back to where the first of the two was.
      term.x = diagonal(term.x, 0, static_cast<int>(i), static_cast<int>(j));
      std::vector<int> order;
      const int last = term.x.rank() - 1;
      for (int d = 0; d < last; ++d) order.push_back(d);
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(i), last);
      term.x = permute(term.x, order);
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

/// Drops the dimensions of one element where others have more: those broadcast.
void drop_ones(Term& term, const Equation& equation) {
  std::vector<std::int64_t> extents;
  Labels labels;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const auto extent = term.x.size(static_cast<int>(i));
    if (extent == 1 && equation.extent(term.labels[i]) != 1) continue;
    extents.push_back(extent);
    labels.push_back(term.labels[i]);
  }
  term = {reshape(term.x, Shape(extents)), labels};
}

/// Sums over the labels that nobody else has.
bool sum_alone(Term& term, const Labels& others) {
  Dims dims;
  Labels left;
  for (std::size_t i = 0; i < term.labels.size(); ++i)
    if (has(others, term.labels[i]))
      left.push_back(term.labels[i]);
    else
      dims.push_back(static_cast<int>(i));
  if (dims.empty()) return false;
  term = {sum(term.x, dims), left};
  return true;
}

Tensor arranged(const Term& term, const Labels& order) {
  std::vector<int> dims;
  for (int label : order)
    dims.push_back(static_cast<int>(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin()));
  return permute(term.x, dims);
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The product over the elements of `batch`, summed over `inner`.
Term product(const Term& a, const Term& b, const Labels& others) {
  Labels batch, inner, rows, columns;
  std::int64_t batches = 1, terms = 1, row_count = 1, column_count = 1;
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    const int label = a.labels[i];
    const auto extent = a.x.size(static_cast<int>(i));
    if (!has(b.labels, label)) {
      rows.push_back(label);
      row_count *= extent;
    } else if (has(others, label)) {
      batch.push_back(label);
      batches *= extent;
    } else {
      inner.push_back(label);
      terms *= extent;
    }
  }
  for (std::size_t i = 0; i < b.labels.size(); ++i)
    if (!has(a.labels, b.labels[i])) {
      columns.push_back(b.labels[i]);
      column_count *= b.x.size(static_cast<int>(i));
    }
  const Labels all = joined({batch, rows, columns});
  for (int label : all) {
    const auto& from = has(a.labels, label) ? a : b;
    extents.push_back(
        from.x.size(static_cast<int>(std::find(from.labels.begin(), from.labels.end(), label) - from.labels.begin())));
  }
  if (inner.empty()) {
    const Shape left{batches, row_count, 1}, right{batches, 1, column_count};
    const Tensor y = reshape(arranged(a, joined({batch, rows})), left) * reshape(arranged(b, joined({batch, columns})), right);
    return {reshape(y, Shape(extents)), all};
  }
  // Either order of a matrix's dimensions will do: the one that lies so already.
  const auto last_is_inner = [&](const Term& term) { return !term.labels.empty() && has(inner, term.labels.back()); };
  const bool transpose_a = !rows.empty() && !last_is_inner(a), transpose_b = last_is_inner(b) && !columns.empty();
  const Tensor left = reshape(arranged(a, transpose_a ? joined({batch, inner, rows}) : joined({batch, rows, inner})),
                              transpose_a ? Shape{batches, terms, row_count} : Shape{batches, row_count, terms});
  const Tensor right = reshape(arranged(b, transpose_b ? joined({batch, columns, inner}) : joined({batch, inner, columns})),
                               transpose_b ? Shape{batches, column_count, terms} : Shape{batches, terms, column_count});
  const MatmulOptions options{.transpose_a = transpose_a, .transpose_b = transpose_b};
  const Tensor y = batch.empty() ? matmul(reshape(left, Shape{left.size(1), left.size(2)}),
                                          reshape(right, Shape{right.size(1), right.size(2)}), options)
                                 : matmul(left, right, options);
  return {reshape(y, Shape(extents)), all};
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  require_defined("einsum", "operands", operands);
  if (operands.empty()) throw Error("einsum: no operands were given");
  for (const auto& operand : operands) {
    ops::require_floating("einsum", operand.spec());
    ops::require_same_dtype("einsum", operands[0].spec(), operand.spec());
  }
  Equation parsed(equation, operands);
  // Between its steps the result is not rounded to narrow dtypes.
  const auto dtype = operands[0].dtype();
  if (operands.size() > 2)
    for (auto& term : parsed.terms) term.x = ops::as_f32(term.x);
  for (auto& term : parsed.terms) {
    take_diagonals(term);
    drop_ones(term, parsed);
  }
  Term all = parsed.terms[0];
  for (std::size_t i = 1; i <= parsed.terms.size(); ++i) {
    Labels after = parsed.result;
    for (std::size_t k = i + 1; k < parsed.terms.size(); ++k)
      after.insert(after.end(), parsed.terms[k].labels.begin(), parsed.terms[k].labels.end());
    if (i == parsed.terms.size()) {
      sum_alone(all, after);
      break;
    }
    auto& next = parsed.terms[i];
    const auto narrow = [&](const Term& term, const Labels& others) {
      return std::any_of(term.labels.begin(), term.labels.end(), [&](int label) { return !has(others, label); });
    };
    const Labels beside_all = joined({after, next.labels}), beside_next = joined({after, all.labels});
    if (narrow(all, beside_all) || narrow(next, beside_next)) {
      all.x = ops::as_f32(all.x);
      next.x = ops::as_f32(next.x);
      sum_alone(all, beside_all);
      sum_alone(next, beside_next);
    }
    all = product(all, next, after);
  }
  return cast(arranged(all, parsed.result), dtype);
}

}  // namespace clnet
