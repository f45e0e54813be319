// The arguments of a call of PyTorch's function, as tools/dev/torch_opinfo.py writes them: by position or by name. All must be
// read, as in Given.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tests/torch/cases.h"

namespace clnet::torch::opinfo {

using Operand = std::variant<Tensor, double>;

class Args {
 public:
  /// Throws Failed unless `args` is a list and `kwargs` an object.
  Args(json args, json kwargs, Named tensors);

  /// How many have a position.
  int count() const { return static_cast<int>(args_.size()); }
  /// The argument at a position or, behind the last, of the name; null where it is absent or None. It counts as read.
  const json* find(int at, const std::string& name) const;
  bool is_tensor(int at, const std::string& name) const;
  bool is_list(int at, const std::string& name) const;
  bool is_text(int at, const std::string& name) const;

  // These throw Failed with the name for an argument of another kind, and where one without a default is absent.
  Tensor tensor(int at, const std::string& name = "input") const;
  /// Undefined where it is absent.
  Tensor maybe_tensor(int at, const std::string& name) const;
  /// A list of tensors, or all positions from `at` on.
  std::vector<Tensor> tensors(int at, const std::string& name = "tensors") const;
  Operand operand(int at, const std::string& name) const;
  double number(int at, const std::string& name) const;
  double number(int at, const std::string& name, double otherwise) const;
  std::optional<double> maybe_number(int at, const std::string& name) const;
  std::int64_t integer(int at, const std::string& name) const;
  std::int64_t integer(int at, const std::string& name, std::int64_t otherwise) const;
  int dim(int at, const std::string& name = "dim") const { return static_cast<int>(integer(at, name)); }
  int dim(int at, const std::string& name, int otherwise) const { return static_cast<int>(integer(at, name, otherwise)); }
  bool flag(int at, const std::string& name, bool otherwise = false) const;
  std::string text(int at, const std::string& name, const std::string& otherwise) const;
  /// A list or one number; a None in it becomes -1. Nothing where it is absent.
  std::optional<std::vector<std::int64_t>> maybe_integers(int at, const std::string& name) const;
  std::vector<std::int64_t> integers(int at, const std::string& name) const;
  std::optional<std::vector<double>> maybe_numbers(int at, const std::string& name) const;
  /// A list, or the numbers at all positions from `at` on.
  std::vector<std::int64_t> sizes(int at, const std::string& name = "size") const;
  /// Dimensions; all, which an empty list is, where they are absent.
  Dims dims(int at, const std::string& name = "dim") const;
  /// One number per axis, from a list or one for all.
  std::vector<std::int64_t> axes(int at, const std::string& name, std::size_t count, std::int64_t otherwise) const;
  Dtype dtype(int at, const std::string& name, Dtype otherwise) const;
  Reduction reduction(int at, const std::string& name = "reduction") const;
  /// Arguments that change nothing in clnet.
  void without_effect(const std::set<std::string>& names) const;

  /// A value that find() or a list in it gave.
  Tensor as_tensor(const json& value, const std::string& name) const;
  /// Throws Failed naming the first argument that nothing has read.
  void require_all_read() const;

 private:
  const json& needed(int at, const std::string& name) const;

  json args_, kwargs_;
  Named tensors_;
  mutable std::set<int> read_;
  mutable std::set<std::string> named_;
};

bool holds_tensor(const json& value);
/// Whether the value is {"slice": [start, stop, step]}, {"ellipsis": true} or {"dtype": "f32"}.
bool holds(const json& value, const std::string& kind);
std::int64_t as_integer(const json& value, const std::string& name);

}  // namespace clnet::torch::opinfo
