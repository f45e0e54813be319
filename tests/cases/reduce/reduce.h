#pragma once

#include <fmt/format.h>

#include "tests/cases/case.h"
#include "tests/reference/reduce/reduce.h"

namespace clnet::testing {

struct ReduceLayout {
  Shape shape;
  Dims dims;
  bool keepdim;
};

inline std::vector<Case> reduce_cases() {
  using Function = Tensor (*)(const Tensor&, const Dims&, bool);
  using Reference = Array (*)(const Array&, const std::vector<int>&, bool);
  struct Kind {
    const char* name;
    Function call;
    Reference reference;
  };
  const Kind kinds[] = {{"sum", sum, reference::sum},
                        {"mean", mean, reference::mean},
                        {"prod", prod, reference::prod},
                        {"max", max, reference::max},
                        {"min", min, reference::min}};
  const ReduceLayout layouts[] = {
      {{}, {}, false},
      {{7}, {}, false},
      {{3, 4, 5}, {}, false},
      {{3, 4, 5}, {2}, false},
      {{3, 4, 5}, {0}, true},
      {{3, 4, 5}, {0, 2}, true},
      {{3, 4, 5}, {1}, false},
      {{2, 3, 4, 5}, {-1, -3}, false},
      {{5, 1, 3}, {1}, false},
      {{2, 1, 37}, {0}, true},
      {{37, 70}, {-1}, false},
      {{70, 37}, {0}, false},
      {{2, 2, 3, 2, 5}, {1, 3}, false},
  };
  std::vector<Case> cases;
  for (const auto& kind : kinds)
    for (const auto& layout : layouts) {
      if (kind.call == static_cast<Function>(prod) && layout.shape.numel() > 100) continue;  // vanishes
      cases.push_back(
          {.name = fmt::format("{} of {} over [{}]{}", kind.name, to_string(layout.shape), fmt::join(layout.dims, ", "),
                               layout.keepdim ? " keeping" : ""),
           .inputs = {{layout.shape, -1.2, 1.4}},
           .run = [=](const auto& in) -> std::vector<Tensor> { return {kind.call(in[0], layout.dims, layout.keepdim)}; },
           .reference = [=](const auto& in) -> Arrays { return {kind.reference(in[0], layout.dims, layout.keepdim)}; }});
    }
  // Long runs, wide columns and many rows: every path of the vector and chunked kernels. `slack`: the reference's sums lie near 0
  // when thousands of values cancel, so they are positive here; f16 then needs sums below 65504.
  for (const auto& layout :
       {ReduceLayout{{70001}, {}, false}, ReduceLayout{{3, 40009}, {1}, false}, ReduceLayout{{20011, 3}, {0}, false},
        ReduceLayout{{5003, 67}, {0}, false}, ReduceLayout{{301, 7, 49}, {0, 2}, false}, ReduceLayout{{2, 700, 131}, {1}, false},
        ReduceLayout{{3001, 10}, {1}, false}, ReduceLayout{{500, 5, 17}, {1}, false}})
    for (const auto& kind : kinds) {
      if (kind.call == static_cast<Function>(prod)) continue;
      cases.push_back(
          {.name = fmt::format("{} of {} over [{}]", kind.name, to_string(layout.shape), fmt::join(layout.dims, ", ")),
           .inputs = {{layout.shape, 0.1, 0.9}},
           .run = [=](const auto& in) -> std::vector<Tensor> { return {kind.call(in[0], layout.dims, layout.keepdim)}; },
           .reference = [=](const auto& in) -> Arrays { return {kind.reference(in[0], layout.dims, layout.keepdim)}; },
           .gradient = false,
           .all_dtypes = layout.shape.numel() < 70000 || kind.call != static_cast<Function>(max)});
    }
  for (auto dtype : {Dtype::i32, Dtype::i64, Dtype::u8})
    for (const auto& kind : kinds) {
      if (kind.call == static_cast<Function>(mean)) continue;
      const bool is_prod = kind.call == static_cast<Function>(prod);
      const Shape shape = is_prod ? Shape{3, 5, 4} : Shape{3, 501, 18};
      for (const Dims& dims : {Dims{}, Dims{1}, Dims{2}, Dims{0, 2}}) {
        if (is_prod && dims.size() != 1) continue;
        cases.push_back(
            {.name = fmt::format("{} of {} {} over [{}]", kind.name, to_string(dtype), to_string(shape), fmt::join(dims, ", ")),
             .inputs = {{shape, dtype == Dtype::u8 ? 0.0 : -9.0, 9, dtype}},
             .run = [=](const auto& in) -> std::vector<Tensor> { return {kind.call(in[0], dims, false)}; },
             .reference = [=](const auto& in) -> Arrays { return {kind.reference(in[0], dims, false)}; },
             .gradient = false,
             .all_dtypes = false});
      }
    }
  for (int correction : {0, 1})
    cases.push_back({.name = fmt::format("var with correction {}", correction),
                     .inputs = {{{3, 4, 5}}},
                     .run = [=](const auto& in) -> std::vector<Tensor> {
                       return {var(in[0], {2}, correction), var(in[0], {}, correction, true)};
                     },
                     .reference = [=](const auto& in) -> Arrays {
                       return {reference::var(in[0], {2}, correction, false), reference::var(in[0], {}, correction, true)};
                     }});
  cases.push_back(
      {.name = "sum_to of broadcast dimensions",
       .inputs = {{{2, 3, 4, 5}}},
       .run = [](const auto& in) -> std::vector<Tensor> {
         return {sum_to(in[0], {3, 1, 5}), sum_to(in[0], {}), sum_to(in[0], {2, 3, 4, 5}), sum_to(in[0], {1, 4, 1})};
       },
       .reference = [](const auto& in) -> Arrays {
         auto first = reference::sum(in[0], {0, 2}, false), last = reference::sum(in[0], {0, 1, 3}, false);
         return {Array({3, 1, 5}, first.values), reference::sum(in[0], {}, false), in[0], Array({1, 4, 1}, last.values)};
       }});
  return cases;
}

inline std::vector<Case> arg_reduce_cases() {
  std::vector<Case> cases;
  for (const auto& layout :
       {ReduceLayout{{7}, {0}, false}, ReduceLayout{{3, 4, 5}, {1}, true}, ReduceLayout{{128, 10}, {1}, false},
        ReduceLayout{{40, 6, 9}, {0}, false}, ReduceLayout{{2, 30011}, {-1}, false}, ReduceLayout{{5003, 3}, {0}, true}})
    for (auto dtype : {Dtype::f32, Dtype::i32, Dtype::i64, Dtype::u8}) {
      const int dim = layout.dims[0];
      cases.push_back({.name = fmt::format("argmax and argmin of {} {} along {}", to_string(dtype), to_string(layout.shape), dim),
                       .inputs = {{layout.shape, dtype == Dtype::u8 ? 0.0 : -50.0, 50, dtype}},
                       .run = [=](const auto& in) -> std::vector<Tensor> {
                         return {argmax(in[0], dim, layout.keepdim), argmin(in[0], dim, layout.keepdim)};
                       },
                       .reference = [=](const auto& in) -> Arrays {
                         return {reference::arg(in[0], dim, layout.keepdim, 1), reference::arg(in[0], dim, layout.keepdim, -1)};
                       },
                       .gradient = false});
    }
  return cases;
}

}  // namespace clnet::testing
