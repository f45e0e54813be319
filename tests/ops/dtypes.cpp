// Every operation in every dtype against the double-precision reference of the rounded inputs, or its refusal. What may be
// missing is the rounding to the result's dtype, and what f32 arithmetic of so many steps loses. docs/dtypes.md shows the table;
// CLNET_TEST_ERRORS=1 prints it.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "tests/cases/elementwise/elementwise.h"
#include "tests/cases/index/index_select.h"
#include "tests/cases/shape/pad.h"
#include "tests/cases/shape/slice.h"
#include "tests/ops/check.h"
#include "tests/reference/conv/conv2d.h"
#include "tests/reference/loss/cross_entropy.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/matmul/matmul.h"
#include "tests/reference/norm/batch_norm.h"
#include "tests/reference/norm/softmax.h"
#include "tests/reference/pool/pool2d.h"
#include "tests/reference/reduce/reduce.h"
#include "tests/reference/shape/shape.h"

using namespace clnet;
using namespace clnet::testing;
using Catch::Matchers::Contains;

namespace {

constexpr Dtype all_dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32,
                                Dtype::i64, Dtype::i8,  Dtype::u8,   Dtype::boolean};

enum class Takes : std::uint8_t { all, floats, bools };
enum class Gives : std::uint8_t { same, with_number, boolean, sums, index, f32 };

struct Entry {
  std::string name;
  Takes takes;
  Gives gives;
  /// Of inputs whose dtype is f32 the one under test; whole numbers from 1 to 5 where that is an integer.
  std::vector<Input> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> run;
  std::function<Array(const Arrays&)> reference;
  double steps = 0;      ///< roundings of f32 on the way to an element, in a row
  double roundings = 1;  ///< to the result's dtype
};

bool takes(Takes what, Dtype dtype) {
  switch (what) {
    case Takes::all: return true;
    case Takes::floats: return is_floating(dtype);
    default: return dtype == Dtype::boolean;
  }
}

Dtype result_dtype(Gives what, Dtype dtype) {
  switch (what) {
    case Gives::same: return dtype;
    case Gives::with_number: return dtype == Dtype::boolean ? Dtype::i64 : dtype;
    case Gives::boolean: return Dtype::boolean;
    case Gives::sums: return is_floating(dtype) ? dtype : Dtype::i64;
    case Gives::index: return Dtype::i64;
    default: return Dtype::f32;
  }
}

/// What an integer dtype makes of a number.
double stored(double value, Dtype dtype) {
  const auto wrapped = [&](double range, double least) {
    const double rest = std::fmod(std::trunc(value) - least, range);
    return rest + least + (rest < 0 ? range : 0);
  };
  switch (dtype) {
    case Dtype::i8: return wrapped(256, -128);
    case Dtype::u8: return wrapped(256, 0);
    case Dtype::i32: return wrapped(0x1p32, -0x1p31);
    case Dtype::i64: return std::trunc(value);
    case Dtype::boolean: return value != 0;
    default: return value;
  }
}

double unit_roundoff(Dtype dtype) { return dtype == Dtype::f16 ? 0x1p-11 : dtype == Dtype::bf16 ? 0x1p-8 : 0x1p-24; }
double least_step(Dtype dtype) { return dtype == Dtype::f16 ? 0x1p-25 : 0x1p-133; }

Entry unary(const std::string& name, Takes what, Tensor (*function)(const Tensor&), double (*formula)(double), double steps = 0,
            Gives gives = Gives::same) {
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
          steps};
}

Entry binary(const std::string& name, Takes what, Tensor (*function)(const Tensor&, const Tensor&),
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

std::vector<Entry> elementwise_entries() {
  using T = const Tensor&;
  // 4 units in the last place are 8 roundings: what OpenCL allows most functions; 16 for the others.
  const double few = 10, many = 34;
  const auto f = Takes::floats;
  return {
      unary("abs", Takes::all, abs, [](double x) { return std::abs(x); }),
      unary(
          "neg", Takes::all, [](T x) { return -x; }, [](double x) { return -x; }),
      unary("sign", Takes::all, sign, [](double x) { return x > 0   ? 1.0
                                                            : x < 0 ? -1.0
                                                                    : 0.0; }),
      unary(
          "square", Takes::all, square, [](double x) { return x * x; }, 1),
      unary("relu", Takes::all, relu, [](double x) { return std::max(x, 0.0); }),
      unary(
          "exp", f, exp, [](double x) { return std::exp(x); }, few),
      unary(
          "log", f, log, [](double x) { return std::log(x); }, few),
      unary(
          "log1p", f, log1p, [](double x) { return std::log1p(x); }, few),
      unary(
          "sqrt", f, sqrt, [](double x) { return std::sqrt(x); }, few),
      unary(
          "rsqrt", f, rsqrt, [](double x) { return 1 / std::sqrt(x); }, few),
      unary(
          "reciprocal", f, reciprocal, [](double x) { return 1 / x; }, few),
      unary(
          "sin", f, sin, [](double x) { return std::sin(x); }, few),
      unary(
          "cos", f, cos, [](double x) { return std::cos(x); }, few),
      unary(
          "erf", f, erf, [](double x) { return std::erf(x); }, many),
      unary("floor", f, floor, [](double x) { return std::floor(x); }),
      unary("ceil", f, ceil, [](double x) { return std::ceil(x); }),
      unary("round", f, round, [](double x) { return std::nearbyint(x); }),
      unary(
          "tanh", f, tanh, [](double x) { return std::tanh(x); }, few),
      unary(
          "sigmoid", f, sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, few),
      unary(
          "log_sigmoid", f, log_sigmoid, [](double x) { return -std::log1p(std::exp(-x)); }, few),
      unary("hardtanh", f, relu6, [](double x) { return std::min(std::max(x, 0.0), 6.0); }),
      unary(
          "leaky_relu", f, [](T x) { return leaky_relu(x); }, [](double x) { return x; }),
      unary(
          "elu", f, [](T x) { return elu(x); }, [](double x) { return x; }, few),
      unary(
          "celu", f, [](T x) { return celu(x); }, [](double x) { return x; }, few),
      unary(
          "selu", f, selu, [](double x) { return 1.0507009873554805 * x; }, few),
      unary(
          "gelu", f, [](T x) { return gelu(x); }, [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }, many),
      unary(
          "silu", f, silu, [](double x) { return x / (1 + std::exp(-x)); }, few),
      unary(
          "mish", f, mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 2 * few),
      unary(
          "hardswish", f, hardswish, [](double x) { return x * (x + 3) / 6; }, few),
      unary(
          "hardsigmoid", f, hardsigmoid, [](double x) { return (x + 3) / 6; }, few),
      unary(
          "softplus", f, [](T x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }, few),
      unary(
          "softsign", f, softsign, [](double x) { return x / (1 + x); }, few),
      unary(
          "clamp", f, [](T x) { return clamp(x, 0.75, 1.5); }, [](double x) { return std::clamp(x, 0.75, 1.5); }),
      unary(
          "is_nan", f, is_nan, [](double) { return 0.0; }, 0, Gives::boolean),
      unary("logical_not", Takes::bools, logical_not, [](double x) { return x == 0 ? 1.0 : 0.0; }),
      unary(
          "mul", Takes::all, [](T x) { return x * 3.0; }, [](double x) { return x * 3; }, 1, Gives::with_number),
      unary(
          "add", Takes::all, [](T x) { return 2.0 + x; }, [](double x) { return x + 2; }, 1, Gives::with_number),
      unary(
          "cast", Takes::all, [](T x) { return cast(x, Dtype::f32); }, [](double x) { return x; }, 0, Gives::f32),
      unary(
          "cast", Takes::all, [](T x) { return cast(x, Dtype::boolean); }, [](double x) { return x != 0 ? 1.0 : 0.0; }, 0,
          Gives::boolean),
      binary(
          "add", Takes::all, [](T a, T b) { return a + b; }, [](double a, double b) { return a + b; }, 1),
      binary(
          "sub", Takes::all, [](T a, T b) { return a - b; }, [](double a, double b) { return a - b; }, 1),
      binary(
          "mul", Takes::all, [](T a, T b) { return a * b; }, [](double a, double b) { return a * b; }, 1),
      binary(
          "div", Takes::all, [](T a, T b) { return a / b; }, [](double a, double b) { return a / b; }, few),
      binary(
          "pow", f, pow, [](double a, double b) { return std::pow(a, b); }, many),
      binary("maximum", Takes::all, maximum, [](double a, double b) { return std::max(a, b); }),
      binary("minimum", Takes::all, minimum, [](double a, double b) { return std::min(a, b); }),
      binary(
          "equal", Takes::all, equal, [](double a, double b) { return a == b ? 1.0 : 0.0; }, 0, Gives::boolean),
      binary(
          "not_equal", Takes::all, not_equal, [](double a, double b) { return a != b ? 1.0 : 0.0; }, 0, Gives::boolean),
      binary(
          "less", Takes::all, less, [](double a, double b) { return a < b ? 1.0 : 0.0; }, 0, Gives::boolean),
      binary(
          "less_equal", Takes::all, less_equal, [](double a, double b) { return a <= b ? 1.0 : 0.0; }, 0, Gives::boolean),
      binary(
          "greater", Takes::all, greater, [](double a, double b) { return a > b ? 1.0 : 0.0; }, 0, Gives::boolean),
      binary(
          "greater_equal", Takes::all, greater_equal, [](double a, double b) { return a >= b ? 1.0 : 0.0; }, 0, Gives::boolean),
      binary("logical_and", Takes::bools, logical_and, [](double a, double b) { return a * b; }),
      binary("logical_or", Takes::bools, logical_or, [](double a, double b) { return std::max(a, b); }),
      {"where",
       Takes::all,
       Gives::same,
       {{{5, 1}, 0, 1, Dtype::boolean}, {{7}, 0.5, 2}, {{5, 7}, 0.5, 2}},
       [](const auto& in) { return where(in[0], in[1], in[2]); },
       [](const Arrays& in) {
         return broadcast_reference(in, [](const std::vector<double>& v) { return v[0] != 0 ? v[1] : v[2]; });
       }},
      {"dropout",
       f,
       Gives::same,
       {{{40}, 0.5, 2}},
       [](const auto& in) { return dropout(in[0], 1); },
       [](const Arrays& in) { return Array(in[0].shape); }},
  };
}

std::vector<Entry> shape_entries() {
  const std::vector<Input> one{{{3, 4, 5}, 0.5, 2}};
  const auto same_order = [](const Shape& shape) { return [=](const Arrays& in) { return Array(shape, in[0].values); }; };
  return {
      {"reshape", Takes::all, Gives::same, one,
       [](const auto& in) {
         return reshape(in[0], {5, -1});
       },
       same_order({5, 12})},
      {"permute", Takes::all, Gives::same, one,
       [](const auto& in) {
         return permute(in[0], {2, 0, 1});
       },
       [](const Arrays& in) {
         return make_array({5, 3, 4}, [&](const Coordinates& at) { return in[0].at({at[1], at[2], at[0]}); });
       }},
      {"expand",
       Takes::all,
       Gives::same,
       {{{4, 1}, 0.5, 2}},
       [](const auto& in) {
         return expand(in[0], {3, 4, 5});
       },
       [](const Arrays& in) {
         return expand_reference(in[0], {3, 4, 5});
       }},
      {"slice", Takes::all, Gives::same, one, [](const auto& in) { return slice(in[0], 1, 3, 0, -2); },
       [](const Arrays& in) {
         return make_array({3, 2, 5}, [&](const Coordinates& at) { return in[0].at({at[0], 3 - 2 * at[1], at[2]}); });
       }},
      {"concat",
       Takes::all,
       Gives::same,
       {{{2, 5}, 0.5, 2}, {{3, 5}, 0.5, 2}},
       [](const auto& in) {
         return concat({in[0], in[1]}, 0);
       },
       [](const Arrays& in) {
         auto values = in[0].values;
         values.insert(values.end(), in[1].values.begin(), in[1].values.end());
         return Array({5, 5}, values);
       }},
      {"pad",
       Takes::all,
       Gives::same,
       {{{3, 4}, 0.5, 2}},
       [](const auto& in) {
         return pad(in[0], {1, 0}, {0, 2}, 1);
       },
       [](const Arrays& in) {
         return pad_reference(in[0], {1, 0}, {0, 2}, 1, PadMode::constant);
       }},
      {"index_select",
       Takes::all,
       Gives::same,
       {{{6, 3}, 0.5, 2}, {{4}, 0, 5, Dtype::i32}},
       [](const auto& in) { return index_select(in[0], 0, in[1]); },
       [](const Arrays& in) { return index_select_reference(in[0], 0, in[1]); }},
      {"embedding",
       Takes::all,
       Gives::same,
       {{{6, 3}, 0.5, 2}, {{2, 2}, 0, 5, Dtype::i64}},
       [](const auto& in) { return embedding(in[1], in[0]); },
       [](const Arrays& in) { return index_select_reference(in[0], 0, in[1]); }},
      {"sum_to", Takes::all, Gives::same, one,
       [](const auto& in) {
         return sum_to(in[0], {4, 1});
       },
       [](const Arrays& in) {
         return Array({4, 1}, reference::sum(in[0], {0, 2}, false).values);
       },
       15},
  };
}

std::vector<Entry> reduce_entries() {
  const std::vector<Input> one{{{3, 40, 5}, 0.5, 2}}, few{{{3, 6, 5}, 0.5, 2}};
  return {
      {"sum", Takes::all, Gives::sums, one, [](const auto& in) { return sum(in[0], {1}); },
       [](const Arrays& in) { return reference::sum(in[0], {1}, false); }, 40},
      {"mean", Takes::floats, Gives::same, one, [](const auto& in) { return mean(in[0], {1}); },
       [](const Arrays& in) { return reference::mean(in[0], {1}, false); }, 42},
      {"prod", Takes::all, Gives::sums, few, [](const auto& in) { return prod(in[0], {1}); },
       [](const Arrays& in) { return reference::prod(in[0], {1}, false); }, 6},
      {"max", Takes::all, Gives::same, one, [](const auto& in) { return max(in[0], {1}); },
       [](const Arrays& in) { return reference::max(in[0], {1}, false); }},
      {"min", Takes::all, Gives::same, one, [](const auto& in) { return min(in[0], {1}); },
       [](const Arrays& in) { return reference::min(in[0], {1}, false); }},
      {"var", Takes::floats, Gives::same, one, [](const auto& in) { return var(in[0], {1}); },
       [](const Arrays& in) { return reference::var(in[0], {1}, 1, false); }, 60},
      {"argmax", Takes::all, Gives::index, one, [](const auto& in) { return argmax(in[0], 1); },
       [](const Arrays& in) { return reference::arg(in[0], 1, false, 1); }},
      {"argmin", Takes::all, Gives::index, one, [](const auto& in) { return argmin(in[0], 1); },
       [](const Arrays& in) { return reference::arg(in[0], 1, false, -1); }},
      {"softmax", Takes::floats, Gives::same, one, [](const auto& in) { return softmax(in[0], 1); },
       [](const Arrays& in) { return reference::softmax(in[0], 1, false); }, 60},
      {"log_softmax", Takes::floats, Gives::same, one, [](const auto& in) { return log_softmax(in[0], 1); },
       [](const Arrays& in) { return reference::softmax(in[0], 1, true); }, 60},
      {"layer_norm",
       Takes::floats,
       Gives::same,
       {{{6, 40}, 0.5, 2}, {{40}, 0.5, 2}, {{40}, 0.5, 2}},
       [](const auto& in) { return layer_norm(in[0], 1, in[1], in[2]); },
       [](const Arrays& in) { return reference::layer_norm(in[0], 40, &in[1], &in[2], 1e-5); },
       120},
      {"batch_norm_training",
       Takes::floats,
       Gives::same,
       {{{4, 3, 10}, 0.5, 2}, {{3}, 0.5, 2}, {{3}, 0.5, 2}},
       [](const auto& in) { return batch_norm_training(in[0], in[1], in[2]).y; },
       [](const Arrays& in) { return reference::batch_norm(in[0], &in[1], &in[2], 1e-5).y; },
       120},
      {"global_norm", Takes::all, Gives::f32, one, [](const auto& in) { return global_norm({in[0]}); },
       [](const Arrays& in) {
         Array y{Shape{}};
         for (double v : in[0].values) y[0] += v * v;
         y[0] = std::sqrt(y[0]);
         return y;
       },
       620},
  };
}

std::vector<Entry> product_entries() {
  const auto f = Takes::floats;
  return {
      {"matmul",
       f,
       Gives::same,
       {{{20, 300}, 0.5, 2}, {{300, 20}, 0.5, 2}},
       [](const auto& in) { return matmul(in[0], in[1]); },
       [](const Arrays& in) { return matmul_reference(in[0], in[1]); },
       300},
      {"linear",
       f,
       Gives::same,
       {{{5, 60}, 0.5, 2}, {{7, 60}, 0.5, 2}, {{7}, 0.5, 2}},
       [](const auto& in) { return linear(in[0], in[1], in[2]); },
       [](const Arrays& in) { return matmul_reference(in[0], in[1], {.transpose_b = true}, &in[2]); },
       61},
      {"conv2d",
       f,
       Gives::same,
       {{{2, 3, 7, 7}, 0.5, 2}, {{4, 3, 3, 3}, 0.5, 2}, {{4}, 0.5, 2}},
       [](const auto& in) { return conv2d(in[0], in[1], in[2]); },
       [](const Arrays& in) { return conv2d_reference(in, {})[0]; },
       100},
      // The bias is added to a result of its own.
      {"conv_transpose2d",
       f,
       Gives::same,
       {{{2, 3, 5, 5}, 0.5, 2}, {{3, 4, 3, 3}, 0.5, 2}, {{4}, 0.5, 2}},
       [](const auto& in) { return conv_transpose2d(in[0], in[1], in[2]); },
       [](const Arrays& in) { return conv_transpose2d_reference(in, {})[0]; },
       100,
       2},
      {"max_pool2d",
       f,
       Gives::same,
       {{{2, 3, 8, 8}, 0.5, 2}},
       [](const auto& in) { return max_pool2d(in[0], 2); },
       [](const Arrays& in) {
         return pool2d_reference(in[0], {2, 2}, {2, 2}, true);
       }},
      {"avg_pool2d",
       f,
       Gives::same,
       {{{2, 3, 8, 8}, 0.5, 2}},
       [](const auto& in) { return avg_pool2d(in[0], 2); },
       [](const Arrays& in) {
         return pool2d_reference(in[0], {2, 2}, {2, 2}, false);
       },
       6},
      {"mse_loss",
       f,
       Gives::same,
       {{{40}, 0.5, 2}, {{40}, 3, 5}},
       [](const auto& in) { return mse_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double a, double b) { return (a - b) * (a - b); });
       },
       46},
      {"l1_loss",
       f,
       Gives::same,
       {{{40}, 0.5, 2}, {{40}, 3, 5}},
       [](const auto& in) { return l1_loss(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double a, double b) { return std::abs(a - b); });
       },
       46},
      {"bce_with_logits",
       f,
       Gives::same,
       {{{40}, 0.5, 2}, {{40}, 0, 0.5}},
       [](const auto& in) { return bce_with_logits(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean,
                                            [](auto, double x, double t) { return reference::bce_with_logits(x, t); });
       },
       60},
      {"cross_entropy",
       f,
       Gives::same,
       {{{8, 10}, 0.5, 2}, {{8}, 0, 9, Dtype::i32}},
       [](const auto& in) { return cross_entropy(in[0], in[1]); },
       [](const Arrays& in) { return reference::cross_entropy(in[0], in[1], std::nullopt, {}); },
       40},
  };
}

struct Run {
  Tensor result;
  Array want;
};

Run run(const Entry& entry, Dtype dtype) {
  Arrays arrays;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    auto input = entry.inputs[i];
    if (input.dtype == Dtype::f32 && !is_floating(dtype)) {
      input.dtype = dtype;
      input.low = 1;
      input.high = dtype == Dtype::boolean ? 1 : 5;
    }
    auto values = make_values(input, i + 1);
    tensors.push_back(to_tensor(values, entry.inputs[i].dtype == Dtype::f32 ? dtype : input.dtype));
    arrays.push_back(std::move(values));
  }
  const Tensor result = entry.run(tensors);
  return {result, entry.reference(arrays)};
}

/// The largest error as a part of what is allowed.
double largest_share(const Run& run, const Entry& entry) {
  const auto dtype = run.result.dtype();
  const auto got = run.result.to_vector<double>();
  double most = 0, share = 0;
  for (double value : run.want.values) most = std::max(most, std::abs(value));
  for (std::int64_t i = 0; i < run.want.numel(); ++i) {
    const double want = is_floating(dtype) ? run.want[i] : stored(run.want[i], dtype);
    const double allowed = is_floating(dtype) ? entry.roundings * unit_roundoff(dtype) * std::abs(want) + least_step(dtype) +
                                                    entry.steps * 0x1p-24 * most
                                              : 0;
    const double error = std::abs(got[static_cast<std::size_t>(i)] - want);
    INFO("element " << i << ": got " << got[static_cast<std::size_t>(i)] << ", want " << want << ", allowed " << allowed);
    if (!(error <= allowed)) {
      CHECK(error <= allowed);
      return error / allowed;
    }
    if (allowed > 0) share = std::max(share, error / allowed);
  }
  return share;
}

}  // namespace

TEST_CASE("every operation in every dtype is right within its storage format, or is refused by name") {
  auto entries = elementwise_entries();
  for (auto more : {shape_entries(), reduce_entries(), product_entries()})
    entries.insert(entries.end(), more.begin(), more.end());
  const bool print = std::getenv("CLNET_TEST_ERRORS") != nullptr;
  for (const auto& entry : entries) {
    double share = 0;
    for (auto dtype : all_dtypes) {
      INFO(entry.name << " in " << to_string(dtype));
      if (!takes(entry.takes, dtype)) {
        CHECK_THROWS_AS(run(entry, dtype), DtypeError);
        CHECK_THROWS_WITH(run(entry, dtype), Contains(entry.name));
        continue;
      }
      const auto outcome = run(entry, dtype);
      CHECK(outcome.result.dtype() == result_dtype(entry.gives, dtype));
      REQUIRE(outcome.result.shape() == outcome.want.shape);
      share = std::max(share, largest_share(outcome, entry));
    }
    const auto result = [&](Dtype dtype) {
      return takes(entry.takes, dtype) ? to_string(result_dtype(entry.gives, dtype)) : "refused";
    };
    if (print)
      fmt::print("| `{}` | {} | {} | {} | {} | {:.2f} |\n", entry.name, result(Dtype::f16), result(Dtype::i32),
                 result(Dtype::boolean), entry.steps, share);
  }
}
