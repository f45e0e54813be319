// The table of operations and dtypes: what an entry says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/cases/elementwise/elementwise.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing::dtypes {

enum class Takes : std::uint8_t { all, numbers, floats, bools };
enum class Gives : std::uint8_t { same, with_number, boolean, sums, index, f32 };

struct Entry {
  std::string name;
  Takes takes;
  Gives gives;
  /// Of inputs whose dtype is f32 the one under test; whole numbers from 1 to 5 where that is an integer.
  std::vector<Input> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> run;
  std::function<Array(const Arrays&)> reference;
  double steps = 0;       ///< roundings of f32 on the way to an element, in a row
  double roundings = 1;   ///< to the result's dtype
  std::string note = {};  ///< behind the name, in the table
  double steps_of_1 = 0;  ///< of the result's dtype below 1
};

inline Entry unary(const std::string& name, Takes what, Tensor (*function)(const Tensor&), double (*formula)(double),
                   double steps = 0, Gives gives = Gives::same, const std::string& note = {}) {
  return {name,
          what,
          gives,
          {{{3, 37}, 0.5, 2}},
          [=](const auto& in) { return function(in[0]); },
          [=](const Arrays& in) {
            Array y(in[0].shape);
            for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = formula(in[0][i]);
            return y;
          },
          steps,
          1,
          note};
}

inline Entry binary(const std::string& name, Takes what, Tensor (*function)(const Tensor&, const Tensor&),
                    double (*formula)(double, double), double steps = 0, Gives gives = Gives::same) {
  return {name,
          what,
          gives,
          {{{5, 1}, 0.5, 2}, {{7}, 0.5, 2}},
          [=](const auto& in) { return function(in[0], in[1]); },
          [=](const Arrays& in) {
            return broadcast_reference(in, [=](const std::vector<double>& v) { return formula(v[0], v[1]); });
          },
          steps};
}

/// Of a function that only moves elements; `source` says where each comes from, as in tests/cases/shape/rearrange.h.
Entry arrangement(const std::string& name, const Shape& from, const Shape& to, std::function<Tensor(const Tensor&)> function,
                  std::function<std::optional<Coordinates>(const Coordinates&)> source);

/// Of the functions that other operations make up.
std::vector<Entry> composed_entries();
/// Of convolution and pooling of lines and volumes.
std::vector<Entry> volume_entries();
/// Of what chooses, orders, draws and resizes.
std::vector<Entry> index_entries();

}  // namespace clnet::testing::dtypes
