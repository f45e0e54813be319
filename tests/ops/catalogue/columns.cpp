// The catalogue's columns are true: operands are those of the declarations, hold what examples give them, and gradients are as it
// says.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/ops/catalogue/dtypes.h"
#include "tests/paths.h"
#include "tests/support/declarations.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// The tensors of each overload of each function, a list as "tensors[]".
std::multimap<std::string, std::vector<std::string>> declared_operands() {
  const auto text = clnet::test::plain_declarations(CLNET_SOURCE_DIR);
  std::multimap<std::string, std::vector<std::string>> result;
  const std::regex function(R"(CLNET_API [\w:<>]+ (\w+)\(([^;]*)\);)"), tensor(R"(const (std::vector<Tensor>|Tensor)& (\w+))");
  for (std::sregex_iterator match(text.begin(), text.end(), function), end; match != end; ++match) {
    const auto arguments = (*match)[2].str();
    std::vector<std::string> names;
    for (std::sregex_iterator found(arguments.begin(), arguments.end(), tensor); found != end; ++found)
      names.push_back((*found)[2].str() + ((*found)[1] == "Tensor" ? "" : "[]"));
    result.emplace((*match)[1], names);
  }
  return result;
}

bool has_in_order(const std::vector<std::string>& all, const std::vector<std::string>& wanted) {
  auto from = all.begin();
  for (const auto& name : wanted) {
    from = std::find(from, all.end(), name);
    if (from == all.end()) return false;
    ++from;
  }
  return true;
}

double largest(const Tensor& x) {
  double most = 0;
  for (double value : x.to_vector<double>()) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace

TEST_CASE("the catalogue's operands are those of the declarations, in their order") {
  const auto declared = declared_operands();
  for (const auto& operation : ops::catalogue()) {
    // Weights of recurrent layers are fields of an option; rows of elementwise functions have names by their number of operands.
    const std::string name(operation.name);
    if (name.ends_with("_layer") || name.ends_with("_cell") || operation.binary || name == "neg") continue;
    std::vector<std::string> wanted;
    for (const auto& operand : operation.operands) wanted.emplace_back(operand.name);
    const auto [from, to] = declared.equal_range(name);
    INFO(name);
    CHECK(std::any_of(from, to, [&](const auto& overload) { return has_in_order(overload.second, wanted); }));
    // None of them is forgotten.
    std::size_t most = 0;
    for (auto it = from; it != to; ++it) most = std::max(most, it->second.size());
    const bool other_overload = name == "slice_update" || name == "narrow" || name == "lerp" || name == "quantile" ||
                                name == "nanquantile" || name == "rotary_embedding";
    CHECK((other_overload || wanted.size() == most));
  }
}

TEST_CASE("examples give operands what the catalogue says that they hold") {
  for (const auto& example : examples()) {
    const auto& operands = ops::catalogued(example.operation).operands;
    for (std::size_t i = 0; i < std::min(operands.size(), example.inputs.size()); ++i) {
      INFO(example.operation << ", operand " << operands[i].name);
      const auto dtype = example.inputs[i].dtype;
      const auto holds = dtype == Dtype::f32       ? ops::Holds::value
                         : dtype == Dtype::boolean ? ops::Holds::truth
                                                   : ops::Holds::indices;
      CHECK(operands[i].holds == holds);
    }
  }
}

TEST_CASE("operations have the gradients that the catalogue says, and those have gradients") {
  for (const auto& example : examples()) {
    const auto& operation = ops::catalogued(example.operation);
    if (!takes(operation.takes, Dtype::f32)) continue;
    INFO(example.operation << example.note);
    const auto inputs = example_tensors(example);
    std::vector<Tensor> floating;
    for (const auto& input : inputs)
      if (input.dtype() == Dtype::f32) floating.push_back(input);
    const Tensor y = example.run(inputs);
    if (floating.empty() || !is_floating(y.dtype())) continue;
    const auto slopes = gradients(sum(y * y), floating);
    double most = 0;
    for (const auto& slope : slopes) most = std::max(most, largest(slope));
    if (operation.gradient == ops::Gradient::none) {
      CHECK(most == 0);
      continue;
    }
    CHECK((most > 0 || largest(y) == 0));
    Tensor size = Tensor::scalar(0);
    for (const auto& slope : slopes) size = size + sum(slope * slope);
    for (const auto& second : gradients(size, floating)) CHECK(std::isfinite(largest(second)));
  }
}
