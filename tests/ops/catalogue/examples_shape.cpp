// Examples of what fills tensors, moves and picks elements.
#include <cmath>

#include "tests/cases/index/index_select.h"
#include "tests/cases/shape/pad.h"
#include "tests/cases/shape/slice.h"
#include "tests/ops/catalogue/examples.h"
#include "tests/reference/elementwise/special.h"
#include "tests/reference/index/index.h"
#include "tests/reference/random/philox.h"
#include "tests/reference/reduce/reduce.h"

namespace clnet::testing {

/// What makes tensors: of the dtype of a tensor that serves for nothing else.
std::vector<Example> number_examples() {
  const std::vector<Input> dtype{{{4}}};
  const auto made = [=](const std::string& name, const std::function<Tensor(const Tensor&)>& make,
                        const std::function<double(std::int64_t)>& value) {
    return Example{name, dtype, [=](const auto& in) { return make(in[0]); },
                   [=](const Arrays&) {
                     Array y({4});
                     for (std::int64_t i = 0; i < 4; ++i) y[i] = value(i);
                     return y;
                   }};
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
          "full", [](T x) { return full({4}, 1, x.dtype()); }, one),
      made(
          "zeros", [](T x) { return zeros({4}, x.dtype()); }, zero),
      made(
          "ones", [](T x) { return ones({4}, x.dtype()); }, one),
      made("zeros_like", zeros_like, zero),
      made("ones_like", ones_like, one),
      made(
          "arange", [](T x) { return arange(4, 3, 7, x.dtype()); }, [](auto i) { return static_cast<double>(3 + 7 * i); }),
      made("rand", seeded(rand), [](auto i) { return reference::philox_uniform(7, 0, static_cast<std::uint64_t>(i)); }),
      made("randn", seeded(randn), [](auto i) { return reference::philox_normal(7, 0, static_cast<std::uint64_t>(i)); }),
      made(
          "full_like", [](T x) { return full_like(x, 1); }, one),
      made(
          "logspace", [](T x) { return logspace(-1, 2, 4, 2, x.dtype()); },
          [](auto i) { return std::exp2(static_cast<double>(i - 1)); }),
      made(
          "rand_like", [=](T x) { return manual_seed(7), rand_like(x); },
          [](auto i) { return reference::philox_uniform(7, 0, static_cast<std::uint64_t>(i)); }),
      made(
          "randn_like", [=](T x) { return manual_seed(7), randn_like(x); },
          [](auto i) { return reference::philox_normal(7, 0, static_cast<std::uint64_t>(i)); }),
      made(
          "normal", [=](T x) { return manual_seed(7), normal(3, 0.5, {4}, x.dtype()); },
          [](auto i) { return 3 + 0.5 * reference::philox_normal(7, 0, static_cast<std::uint64_t>(i)); }),
      made(
          "exponential", [=](T x) { return manual_seed(7), exponential({4}, 2, x.dtype()); },
          [](auto i) { return -std::log(reference::philox_uniform(7, 0, static_cast<std::uint64_t>(i))) / 2; }),
      made(
          "truncated_normal", [=](T x) { return manual_seed(7), truncated_normal({4}, 1, 0.5, 0.5, 2, x.dtype()); },
          [](auto i) {
            const double low = std::erf(-std::sqrt(0.5)), high = std::erf(std::sqrt(2.0));
            const double share = reference::philox_uniform(7, 0, static_cast<std::uint64_t>(i));
            return 1 + 0.5 * std::sqrt(2.0) * reference::erfinv(low + (high - low) * share);
          }),
      {"one_hot",
       {{{2}, 0, 3, Dtype::i32}, {{1}}},
       [](const auto& in) { return one_hot(in[0], 4, in[1].dtype()); },
       [](const Arrays& in) {
         return make_array({2, 4}, [&](const Coordinates& at) { return in[0][at[0]] == static_cast<double>(at[1]) ? 1.0 : 0.0; });
       }},
  };
}

std::vector<Example> shape_examples() {
  const std::vector<Input> one{{{3, 4, 5}}};
  const auto same_order = [](const Shape& shape) { return [=](const Arrays& in) { return Array(shape, in[0].values); }; };
  return {
      {"flatten", one, [](const auto& in) { return flatten(in[0]); }, same_order({3, 20})},
      {"unsqueeze", one, [](const auto& in) { return unsqueeze(in[0], 1); }, same_order({3, 1, 4, 5})},
      {"squeeze", {{{3, 1, 5}}}, [](const auto& in) { return squeeze(in[0], 1); }, same_order({3, 5})},
      {"transpose", one, [](const auto& in) { return transpose(in[0], 0, 2); },
       [](const Arrays& in) {
         return make_array({5, 4, 3}, [&](const Coordinates& at) { return in[0].at({at[2], at[1], at[0]}); });
       }},
      {"stack",
       {{{2, 3}}, {{2, 3}}},
       [](const auto& in) { return stack(in, 1); },
       [](const Arrays& in) {
         return make_array({2, 2, 3}, [&](const Coordinates& at) {
           return in[static_cast<std::size_t>(at[1])].at({at[0], at[2]});
         });
       }},
      {"split", one,
       [](const auto& in) {
         return split(in[0], {1, 3}, 1)[1];
       },
       [](const Arrays& in) {
         return make_array({3, 3, 5}, [&](const Coordinates& at) { return in[0].at({at[0], at[1] + 1, at[2]}); });
       }},
      {"gather",
       {{{6, 3}}, {{4, 3}, 0, 5, Dtype::i32}},
       [](const auto& in) { return gather(in[0], 0, in[1]); },
       [](const Arrays& in) {
         return reference::index_select(in[0], 0, in[1], true, {4, 3}, 0);
       }},
      {"reshape", one,
       [](const auto& in) {
         return reshape(in[0], {5, -1});
       },
       same_order({5, 12})},
      {"permute", one,
       [](const auto& in) {
         return permute(in[0], {2, 0, 1});
       },
       [](const Arrays& in) {
         return make_array({5, 3, 4}, [&](const Coordinates& at) { return in[0].at({at[1], at[2], at[0]}); });
       }},
      {"expand",
       {{{4, 1}}},
       [](const auto& in) {
         return expand(in[0], {3, 4, 5});
       },
       [](const Arrays& in) {
         return expand_reference(in[0], {3, 4, 5});
       }},
      {"slice", one, [](const auto& in) { return slice(in[0], 1, 3, 0, -2); },
       [](const Arrays& in) {
         return make_array({3, 2, 5}, [&](const Coordinates& at) { return in[0].at({at[0], 3 - 2 * at[1], at[2]}); });
       }},
      {"concat",
       {{{2, 5}}, {{3, 5}}},
       [](const auto& in) { return concat(in, 0); },
       [](const Arrays& in) {
         auto values = in[0].values;
         values.insert(values.end(), in[1].values.begin(), in[1].values.end());
         return Array({5, 5}, values);
       }},
      {"pad",
       {{{3, 4}}},
       [](const auto& in) {
         return pad(in[0], {1, 0}, {0, 2}, 1);
       },
       [](const Arrays& in) {
         return pad_reference(in[0], {1, 0}, {0, 2}, 1, PadMode::constant);
       }},
      {"index_select",
       {{{6, 3}}, {{4}, 0, 5, Dtype::i32}},
       [](const auto& in) { return index_select(in[0], 0, in[1]); },
       [](const Arrays& in) { return index_select_reference(in[0], 0, in[1]); }},
      {"embedding",
       {{{2, 2}, 0, 5, Dtype::i64}, {{6, 3}}},
       [](const auto& in) { return embedding(in[0], in[1]); },
       [](const Arrays& in) { return index_select_reference(in[1], 0, in[0]); }},
      {"sum_to", one,
       [](const auto& in) {
         return sum_to(in[0], {4, 1});
       },
       [](const Arrays& in) {
         return Array({4, 1}, reference::sum(in[0], {0, 2}, false).values);
       }},
  };
}

}  // namespace clnet::testing
