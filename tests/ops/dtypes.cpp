// Every operation in every dtype against the double-precision reference of the rounded inputs, or its refusal. What may be
// missing is the rounding to the result's dtype, and what f32 arithmetic of so many steps loses. docs/dtypes.md shows the table,
// and must show it as it is; CLNET_TEST_ERRORS=1 CLNET_TEST_ALL=1 prints it.
#include "tests/ops/dtypes.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "tests/cases/elementwise/elementwise.h"
#include "tests/cases/index/index_select.h"
#include "tests/cases/shape/pad.h"
#include "tests/cases/shape/slice.h"
#include "tests/ops/check.h"
#include "tests/paths.h"
#include "tests/reference/conv/conv2d.h"
#include "tests/reference/index/index.h"
#include "tests/reference/loss/cross_entropy.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/matmul/matmul.h"
#include "tests/reference/norm/batch_norm.h"
#include "tests/reference/norm/softmax.h"
#include "tests/reference/pool/pool2d.h"
#include "tests/reference/random/philox.h"
#include "tests/reference/reduce/reduce.h"
#include "tests/reference/shape/shape.h"
#include "tests/support/declared_operations.h"

using namespace clnet;
using namespace clnet::testing;
using namespace clnet::testing::dtypes;
using Catch::Matchers::Contains;

namespace {

constexpr Dtype all_dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32,
                                Dtype::i64, Dtype::i8,  Dtype::u8,   Dtype::boolean};

bool takes(Takes what, Dtype dtype) {
  switch (what) {
    case Takes::all: return true;
    case Takes::numbers: return dtype != Dtype::boolean;
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

double least_step(Dtype dtype) { return dtype == Dtype::f16 ? 0x1p-25 : 0x1p-133; }

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
      unary("trunc", f, trunc, [](double x) { return std::trunc(x); }),
      unary("frac", f, frac, [](double x) { return x - std::trunc(x); }),
      unary(
          "nan_to_num", f, [](T x) { return nan_to_num(x); }, [](double x) { return x; }),
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
          "mul", Takes::all, [](T x) { return x * 3.0; }, [](double x) { return x * 3; }, 1, Gives::with_number, " a number"),
      unary(
          "add", Takes::all, [](T x) { return 2.0 + x; }, [](double x) { return x + 2; }, 1, Gives::with_number, " a number"),
      unary(
          "cast", Takes::all, [](T x) { return cast(x, Dtype::f32); }, [](double x) { return x; }, 0, Gives::f32, " to f32"),
      unary(
          "cast", Takes::all, [](T x) { return cast(x, Dtype::boolean); }, [](double x) { return x != 0 ? 1.0 : 0.0; }, 0,
          Gives::boolean, " to bool"),
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
          "eq", Takes::all, eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }, 0, Gives::boolean),
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

/// What makes tensors: of the dtype of a tensor that serves for nothing else.
std::vector<Entry> number_entries() {
  const std::vector<Input> dtype{{{4}, 0.5, 2}};
  const auto made = [=](const std::string& name, Takes what, const std::function<Tensor(const Tensor&)>& make,
                        const std::function<double(std::int64_t)>& value, double steps = 0, double steps_of_1 = 0) {
    return Entry{name,
                 what,
                 Gives::same,
                 dtype,
                 [=](const auto& in) { return make(in[0]); },
                 [=](const Arrays&) {
                   Array y({4});
                   for (std::int64_t i = 0; i < 4; ++i) y[i] = value(i);
                   return y;
                 },
                 steps,
                 1,
                 {},
                 steps_of_1};
  };
  using T = const Tensor&;
  const auto constant = [](double value) { return [=](auto) { return value; }; };
  const auto zero = constant(0), one = constant(1);
  const auto seeded = [](Tensor (*make)(const Shape&, Dtype)) {
    return [=](T x) {
      manual_seed(7);
      return make({4}, x.dtype());
    };
  };
  return {
      made(
          "full", Takes::all, [](T x) { return full({4}, 1, x.dtype()); }, one),
      made(
          "zeros", Takes::all, [](T x) { return zeros({4}, x.dtype()); }, zero),
      made(
          "ones", Takes::all, [](T x) { return ones({4}, x.dtype()); }, one),
      made("zeros_like", Takes::all, zeros_like, zero),
      made("ones_like", Takes::all, ones_like, one),
      made(
          "arange", Takes::numbers, [](T x) { return arange(4, 3, 7, x.dtype()); },
          [](auto i) { return static_cast<double>(3 + 7 * i); }, 2),
      // Cut off, lest it become 1.
      made(
          "rand", Takes::floats, seeded(rand),
          [](auto i) { return reference::philox_uniform(7, 0, static_cast<std::uint64_t>(i)); }, 0, 1),
      made(
          "randn", Takes::floats, seeded(randn),
          [](auto i) { return reference::philox_normal(7, 0, static_cast<std::uint64_t>(i)); }, 20),
      {"one_hot",
       Takes::all,
       Gives::same,
       {{{2}, 0, 3, Dtype::i32}, {{1}, 0.5, 2}},
       [](const auto& in) { return one_hot(in[0], 4, in[1].dtype()); },
       [](const Arrays& in) {
         return make_array({2, 4}, [&](const Coordinates& at) { return in[0][at[0]] == static_cast<double>(at[1]) ? 1.0 : 0.0; });
       }},
  };
}

std::vector<Entry> shape_entries() {
  const std::vector<Input> one{{{3, 4, 5}, 0.5, 2}};
  const auto same_order = [](const Shape& shape) { return [=](const Arrays& in) { return Array(shape, in[0].values); }; };
  return {
      {"flatten", Takes::all, Gives::same, one, [](const auto& in) { return flatten(in[0]); }, same_order({3, 20})},
      {"unsqueeze", Takes::all, Gives::same, one, [](const auto& in) { return unsqueeze(in[0], 1); }, same_order({3, 1, 4, 5})},
      {"squeeze",
       Takes::all,
       Gives::same,
       {{{3, 1, 5}, 0.5, 2}},
       [](const auto& in) { return squeeze(in[0], 1); },
       same_order({3, 5})},
      {"transpose", Takes::all, Gives::same, one, [](const auto& in) { return transpose(in[0], 0, 2); },
       [](const Arrays& in) {
         return make_array({5, 4, 3}, [&](const Coordinates& at) { return in[0].at({at[2], at[1], at[0]}); });
       }},
      {"stack",
       Takes::all,
       Gives::same,
       {{{2, 3}, 0.5, 2}, {{2, 3}, 0.5, 2}},
       [](const auto& in) {
         return stack({in[0], in[1]}, 1);
       },
       [](const Arrays& in) {
         return make_array({2, 2, 3}, [&](const Coordinates& at) {
           return in[static_cast<std::size_t>(at[1])].at({at[0], at[2]});
         });
       }},
      {"split", Takes::all, Gives::same, one,
       [](const auto& in) {
         return split(in[0], {1, 3}, 1)[1];
       },
       [](const Arrays& in) {
         return make_array({3, 3, 5}, [&](const Coordinates& at) { return in[0].at({at[0], at[1] + 1, at[2]}); });
       }},
      {"gather",
       Takes::all,
       Gives::same,
       {{{6, 3}, 0.5, 2}, {{4, 3}, 0, 5, Dtype::i32}},
       [](const auto& in) { return gather(in[0], 0, in[1]); },
       [](const Arrays& in) {
         return reference::index_select(in[0], 0, in[1], true, {4, 3}, 0);
       }},
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
      {"any", Takes::all, Gives::boolean, one, [](const auto& in) { return any(in[0], {1}); },
       [](const Arrays& in) {
         Array y = reference::max(in[0], {1}, false);
         for (auto& value : y.values) value = value != 0 ? 1 : 0;
         return y;
       }},
      {"all", Takes::all, Gives::boolean, one, [](const auto& in) { return all(in[0], {1}); },
       [](const Arrays& in) {
         Array y = reference::min(in[0], {1}, false);
         for (auto& value : y.values) value = value != 0 ? 1 : 0;
         return y;
       }},
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
      {"batch_norm_inference",
       Takes::floats,
       Gives::same,
       {{{4, 3, 10}, 0.5, 2}, {{3}, 0.5, 2}, {{3}, 0.5, 2}, {{3}, 0.5, 2}, {{3}, 0.5, 2}},
       [](const auto& in) { return batch_norm_inference(in[0], in[1], in[2], in[3], in[4]); },
       [](const Arrays& in) {
         return make_array({4, 3, 10}, [&](const Coordinates& at) {
           const auto c = at[1];
           return (in[0].at({at[0], c, at[2]}) - in[1][c]) / std::sqrt(in[2][c] + 1e-5) * in[3][c] + in[4][c];
         });
       },
       20},
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
      {"addmm",
       f,
       Gives::same,
       {{{20}, 0.5, 2}, {{5, 60}, 0.5, 2}, {{60, 20}, 0.5, 2}},
       [](const auto& in) { return addmm(in[0], in[1], in[2]); },
       [](const Arrays& in) { return matmul_reference(in[1], in[2], {}, &in[0]); },
       61,
       2},
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
      {"adaptive_max_pool2d",
       f,
       Gives::same,
       {{{2, 3, 8, 8}, 0.5, 2}},
       [](const auto& in) { return adaptive_max_pool2d(in[0], 3); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 3}, {.adaptive = 3}, true); }},
      {"adaptive_avg_pool2d",
       f,
       Gives::same,
       {{{2, 3, 8, 8}, 0.5, 2}},
       [](const auto& in) { return adaptive_avg_pool2d(in[0], 3); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 3}, {.adaptive = 3}, false); },
       20},
      {"global_max_pool2d",
       f,
       Gives::same,
       {{{2, 3, 8, 8}, 0.5, 2}},
       [](const auto& in) { return global_max_pool2d(in[0]); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 1}, {.adaptive = 1}, true); }},
      {"global_avg_pool2d",
       f,
       Gives::same,
       {{{2, 3, 8, 8}, 0.5, 2}},
       [](const auto& in) { return global_avg_pool2d(in[0]); },
       [](const Arrays& in) { return pool2d_reference(in[0], {.adaptive = 1}, {.adaptive = 1}, false); },
       70},
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
      {"binary_cross_entropy_with_logits",
       f,
       Gives::same,
       {{{40}, 0.5, 2}, {{40}, 0, 0.5}},
       [](const auto& in) { return binary_cross_entropy_with_logits(in[0], in[1]); },
       [](const Arrays& in) {
         return reference::elementwise_loss(in[0], in[1], Reduction::mean, [](auto, double x, double t) {
           return reference::binary_cross_entropy_with_logits(x, t);
         });
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
                                                    entry.steps_of_1 * unit_roundoff(dtype) + entry.steps * 0x1p-24 * most
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

std::vector<Entry> all_entries() {
  auto entries = elementwise_entries();
  for (auto more : {number_entries(), shape_entries(), reduce_entries(), product_entries(), composed_entries(), volume_entries(),
                    index_entries()})
    entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

/// An entry's line in the table of docs/dtypes.md.
std::string row(const Entry& entry) {
  const auto result = [&](Dtype dtype) {
    return takes(entry.takes, dtype) ? to_string(result_dtype(entry.gives, dtype)) : "refused";
  };
  return fmt::format("| `{}`{} | {} | {} | {} | {}{}{} |", entry.name, entry.note, result(Dtype::f16), result(Dtype::i32),
                     result(Dtype::boolean), entry.steps,
                     entry.roundings == 1 ? "" : fmt::format(", and {} of the dtype", entry.roundings),
                     entry.steps_of_1 == 0 ? "" : ", cut off to the dtype's steps below 1");
}

}  // namespace

TEST_CASE("every operation in every dtype is right within its storage format, or is refused by name") {
  const bool print = std::getenv("CLNET_TEST_ERRORS") != nullptr;
  const auto entries = all_entries();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const auto& entry = entries[index];
    const auto sampled = sampled_dtypes(index);
    // One of the integers, in turn.
    std::vector<Dtype> whole;
    for (auto dtype : all_dtypes)
      if (!is_floating(dtype) && takes(entry.takes, dtype)) whole.push_back(dtype);
    const auto is_sampled = [&](Dtype dtype) {
      if (all_wanted() || dtype == Dtype::f32) return true;
      if (is_floating(dtype)) return std::find(sampled.begin(), sampled.end(), dtype) != sampled.end();
      return dtype == whole[index % whole.size()];
    };
    double share = 0;
    for (auto dtype : all_dtypes) {
      INFO(entry.name << " in " << to_string(dtype));
      if (!takes(entry.takes, dtype)) {
        CHECK_THROWS_AS(run(entry, dtype), DtypeError);
        CHECK_THROWS_WITH(run(entry, dtype), Contains(entry.name));
        continue;
      }
      if (!is_sampled(dtype)) continue;
      const auto outcome = run(entry, dtype);
      CHECK(outcome.result.dtype() == result_dtype(entry.gives, dtype));
      REQUIRE(outcome.result.shape() == outcome.want.shape);
      share = std::max(share, largest_share(outcome, entry));
    }
    if (print) fmt::print("{} {:.2f} |\n", row(entry), share);
  }
}

TEST_CASE("gradients in f16 and bf16 are those in f32 of the same values, but for roundings to the dtype") {
  const bool print = std::getenv("CLNET_TEST_ERRORS") != nullptr;
  const auto entries = all_entries();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const auto& entry = entries[index];
    if (!takes(entry.takes, Dtype::f16)) continue;
    // Not those in which the forward pass is.
    for (auto dtype : sampled_dtypes(index + 1)) {
      INFO(entry.name << entry.note << " in " << to_string(dtype));
      std::vector<Tensor> narrow, wide, narrow_inputs, wide_inputs;
      for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
        const auto& input = entry.inputs[i];
        const bool floating = input.dtype == Dtype::f32;
        auto values = make_values(input, i + 1);
        narrow.push_back(to_tensor(values, floating ? dtype : input.dtype));
        // The values are rounded now.
        wide.push_back(to_tensor(values, input.dtype));
        if (!floating) continue;
        narrow_inputs.push_back(narrow.back());
        wide_inputs.push_back(wide.back());
      }
      const Tensor y = entry.run(narrow), wide_y = entry.run(wide);
      if (!is_floating(y.dtype())) continue;
      auto weights = make_values({y.shape(), 0.5, 1}, 100);
      const Tensor g = to_tensor(weights, y.dtype()), wide_g = to_tensor(weights, wide_y.dtype());
      const auto got = gradients({&y, 1}, {&g, 1}, narrow_inputs), want = gradients({&wide_y, 1}, {&wide_g, 1}, wide_inputs);
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].dtype() == dtype);
        const auto near = to_array(got[i]), exact = to_array(want[i]);
        double most = 0;
        for (double value : exact.values) most = std::max(most, std::abs(value));
        for (std::int64_t k = 0; k < exact.numel(); ++k) {
          const double error = std::abs(near[k] - exact[k]);
          worst = std::max(worst, (error - 2 * least_step(dtype)) / (unit_roundoff(dtype) * most + 1e-300));
          REQUIRE_FALSE(std::isnan(error));
        }
      }
      CHECK(worst <= 4);
      if (print) fmt::print("gradient of {}{} in {}: {:.2f}\n", entry.name, entry.note, to_string(dtype), worst);
    }
  }
}

TEST_CASE("the table of docs/dtypes.md has every operation of ops.h, as tested") {
  auto operations = clnet::test::declared_operations(CLNET_SOURCE_DIR);
  REQUIRE(operations.size() > 90);
  // They read and set the process's generator, and make no tensor; relu6 is hardtanh; whole numbers at random are of no other
  // dtype.
  for (const char* other : {"manual_seed", "random_state", "set_random_state", "relu6", "randint", "randperm"})
    CHECK(operations.erase(other) == 1);
  const std::map<std::string, std::vector<std::string>> operators{
      {"operator+", {"add"}}, {"operator-", {"sub", "neg"}}, {"operator*", {"mul"}}, {"operator/", {"div"}}};
  for (const auto& [name, rows] : operators) {
    CHECK(operations.erase(name) == 1);
    operations.insert(rows.begin(), rows.end());
  }
  std::multiset<std::string> tested, documented;
  for (const auto& entry : all_entries()) {
    INFO(entry.name);
    CHECK(operations.count(entry.name) == 1);
    tested.insert(row(entry));
  }
  for (const auto& entry : all_entries()) operations.erase(entry.name);
  for (const auto& name : operations) {
    FAIL_CHECK(name << " has no row");
  }
  std::ifstream file(CLNET_SOURCE_DIR "/docs/dtypes.md");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Operations";
    if (inside && line.starts_with("| `")) documented.insert(line);
  }
  for (const auto& line : tested) {
    INFO(line);
    CHECK(documented.count(line) == tested.count(line));
  }
  CHECK(documented.size() == tested.size());
}
