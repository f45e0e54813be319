#include "tests/ops/catalogue/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "clnet/error.h"
#include "tests/all_cases.h"
#include "tests/cases/shape/rearrange.h"

namespace clnet::testing {

Example unary(const std::string& name, Tensor (*function)(const Tensor&), double (*formula)(double), const std::string& note,
              std::optional<ops::Gives> gives) {
  return {name,
          {{{3, 37}}},
          [=](const auto& in) { return function(in[0]); },
          [=](const Arrays& in) {
            Array y(in[0].shape);
            for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = formula(in[0][i]);
            return y;
          },
          note,
          gives};
}

Example binary(const std::string& name, Tensor (*function)(const Tensor&, const Tensor&), double (*formula)(double, double)) {
  return {name,
          {{{5, 1}}, {{7}}},
          [=](const auto& in) { return function(in[0], in[1]); },
          [=](const Arrays& in) {
            return broadcast_reference(in, [=](const std::vector<double>& v) { return formula(v[0], v[1]); });
          }};
}

Example arrangement(const std::string& name, const Shape& from, const Shape& to, std::function<Tensor(const Tensor&)> function,
                    std::function<std::optional<Coordinates>(const Coordinates&)> source) {
  const auto example = arranged(name, from, to, std::move(function), std::move(source));
  return {name,
          {{from}},
          [=](const std::vector<Tensor>& in) { return example.run(in)[0]; },
          [=](const Arrays& in) { return example.reference(in)[0]; }};
}

std::vector<Example> elementwise_examples() {
  using T = const Tensor&;
  std::vector<Example> result{
      unary(
          "nan_to_num", [](T x) { return nan_to_num(x); }, [](double x) { return x; }),
      unary(
          "clamp", [](T x) { return clamp(x, 0.75, 1.5); }, [](double x) { return std::clamp(x, 0.75, 1.5); }),
      unary(
          "mul", [](T x) { return x * 3.0; }, [](double x) { return x * 3; }, " a number", ops::Gives::with_number),
      unary(
          "add", [](T x) { return 2.0 + x; }, [](double x) { return x + 2; }, " a number", ops::Gives::with_number),
      unary(
          "cast", [](T x) { return cast(x, Dtype::f32); }, [](double x) { return x; }, " to f32", ops::Gives::f32),
      unary(
          "cast", [](T x) { return cast(x, Dtype::boolean); }, [](double x) { return x != 0 ? 1.0 : 0.0; }, " to bool",
          ops::Gives::boolean),
      {"bitwise_not",
       {{{3, 37}}},
       [](const auto& in) { return bitwise_not(in[0]); },
       [](const Arrays& in) {
         Array y = in[0];
         for (auto& value : y.values) value = -value - 1;
         return y;
       },
       {},
       {},
       [](const Arrays& in) { return Array(in[0].shape); }},
      {"where",
       {{{5, 1}, 0, 1, Dtype::boolean}, {{7}}, {{5, 7}}},
       [](const auto& in) { return where(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] != 0 ? v[1] : v[2]; });
       }},
      {"dropout",
       {{{40}}},
       [](const auto& in) { return dropout(in[0], 1); },
       [](const Arrays& in) { return Array(in[0].shape); }},
  };
  for (const auto& function : elementwise_functions())
    result.push_back({std::string(function.operation->name),
                      function.operation->unary ? std::vector<Input>{{{3, 37}}} : std::vector<Input>{{{5, 1}}, {{7}}},
                      [=](const auto& in) { return function.run(in); },
                      [=](const Arrays& in) { return function.reference(in); }});
  return result;
}

const std::vector<Example>& examples() {
  static const std::vector<Example> all = [] {
    std::vector<Example> result;
    for (auto* family : {elementwise_examples, number_examples, shape_examples, reduce_examples, product_examples,
                         composed_examples, volume_examples, index_examples}) {
      auto part = family();
      std::move(part.begin(), part.end(), std::back_inserter(result));
    }
    std::set<std::string, std::less<>> names;
    for (const auto& example : result) names.insert(example.operation);
    for (const auto& table : registered_cases())
      if (names.insert(table.operation).second) {
        auto first = table.cases().front();
        result.push_back({table.operation, first.inputs, [run = first.run](const auto& in) { return run(in)[0]; },
                          [reference = first.reference](const Arrays& in) { return reference(in)[0]; }});
      }
    // The dtype test has nothing to ask of whole numbers at random: tests/ops/random holds them to their bits.
    std::string missing;
    for (const auto& operation : ops::catalogue())
      if (!names.contains(operation.name) && operation.name != "randint" && operation.name != "randperm")
        missing += fmt::format(" {}", operation.name);
    if (!missing.empty()) throw Error("operations of the catalogue without an example and a reference:" + missing);
    return result;
  }();
  return all;
}

}  // namespace clnet::testing
