// What a node of the graph means on the host: by its operation's name and fields, in double precision. The judge of random
// programs goes by it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/error.h"
#include "lib/graph/node.h"
#include "tests/cases/case.h"

namespace clnet::testing {

/// A node with its inputs' values.
struct Call {
  const Node& node;
  Arrays in;

  const Shape& shape(std::size_t output = 0) const { return node.outputs[output].shape; }
  Dtype dtype(std::size_t output = 0) const { return node.outputs[output].dtype; }
  const Shape& input_shape(std::size_t input) const { return node.inputs[input].shape(); }
  /// A field's value. Throws Error, naming operation and field, when there is none.
  double number(std::string_view field) const {
    const auto fields = node.op->fields();
    const auto& value = find(fields, field);
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    return std::get<double>(value);
  }
  std::int64_t integer(std::string_view field) const { return static_cast<std::int64_t>(number(field)); }
  bool flag(std::string_view field) const { return number(field) != 0; }
  std::vector<std::int64_t> list(std::string_view field) const {
    const auto fields = node.op->fields();
    return std::get<std::vector<std::int64_t>>(find(fields, field));
  }

 private:
  const Field& find(const Fields& fields, std::string_view name) const {
    for (const auto& [key, value] : fields)
      if (key == name) return value;
    throw Error(fmt::format("the interpreter expects a field '{}' of operation {}", name, node.op->name()));
  }
};

/// A scalar of i64 as bits without a sign.
inline std::uint64_t as_unsigned(const Array& scalar) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(scalar[0])); }

struct Meaning {
  Arrays (*apply)(const Call& call) = nullptr;
  bool exact = false;  ///< results are inputs' values, whole numbers or truth values: nothing is computed in floating point
  double slack = 1;    ///< how many times the rounding errors of a plain sum are to be expected
  /// Where terms inside the operation may cancel: the sizes of the first output's terms, whose rounding errors are its own.
  Array (*terms)(const Call& call) = nullptr;
};
/// Meanings that headers of tests/cases add to those of tests/fuzz.
inline std::map<std::string_view, Meaning>& registered_meanings() {
  static std::map<std::string_view, Meaning> all;
  return all;
}
struct RegisterMeaning {
  RegisterMeaning(std::string_view op, const Meaning& meaning) { registered_meanings().emplace(op, meaning); }
};

}  // namespace clnet::testing
