// Cases of products of fixed ranks, with sums, over chosen dimensions, Kronecker's and the cross product. The references are
// einsum() by its definition.
#pragma once

#include "tests/cases/elementwise/elementwise.h"
#include "tests/cases/meaning.h"
#include "tests/reference/matmul/einsum.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

inline Case product(const std::string& name, const Shape& a, const Shape& b, Tensor (*run)(const Tensor&, const Tensor&),
                    const std::vector<std::string>& terms, const std::string& result) {
  return {.name = name,
          .inputs = {{a}, {b}},
          .run = [=](const std::vector<Tensor>& in) { return std::vector{run(in[0], in[1])}; },
          .reference = [=](const Arrays& in) { return Arrays{reference::einsum(terms, result, in)}; }};
}

/// 0.5 x + 2 product, and with the defaults.
using Added = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, double, double);
inline std::vector<Case> added(const std::string& name, const Shape& x, const Shape& a, const Shape& b, Added run,
                               const std::vector<std::string>& terms, const std::string& result) {
  std::vector<Case> cases;
  for (bool plain : {true, false})
    cases.push_back({.name = plain ? name : name + " with factors",
                     .inputs = {{x}, {a}, {b}},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           return std::vector{plain ? run(in[0], in[1], in[2], 1, 1) : run(in[0], in[1], in[2], 0.5, 2)};
                         },
                     .reference =
                         [=](const Arrays& in) {
                           const auto all = reference::einsum(terms, result, {in[1], in[2]});
                           return Arrays{broadcast_reference({all, in[0]}, [=](const std::vector<double>& v) {
                             return plain ? v[0] + v[1] : 2 * v[0] + 0.5 * v[1];
                           })};
                         }});
  return cases;
}

inline std::vector<Case> mm_cases() { return {product("mm", {3, 5}, {5, 4}, mm, {"ik", "kj"}, "ij")}; }
inline std::vector<Case> bmm_cases() { return {product("bmm", {2, 3, 5}, {2, 5, 4}, bmm, {"bik", "bkj"}, "bij")}; }
inline std::vector<Case> mv_cases() { return {product("mv", {3, 5}, {5}, mv, {"ik", "k"}, "i")}; }
inline std::vector<Case> dot_cases() { return {product("dot", {7}, {7}, dot, {"k", "k"}, "")}; }
inline std::vector<Case> inner_cases() {
  return {product("inner", {2, 3, 5}, {4, 5}, inner, {"aik", "jk"}, "aij"),
          product("inner of vectors", {5}, {5}, inner, {"k", "k"}, "")};
}
inline std::vector<Case> addmv_cases() { return added("addmv", {3}, {3, 5}, {5}, addmv, {"ik", "k"}, "i"); }
inline std::vector<Case> baddbmm_cases() {
  return added("baddbmm", {3, 4}, {2, 3, 5}, {2, 5, 4}, baddbmm, {"bik", "bkj"}, "bij");
}
inline std::vector<Case> addbmm_cases() { return added("addbmm", {3, 4}, {2, 3, 5}, {2, 5, 4}, addbmm, {"bik", "bkj"}, "ij"); }
inline std::vector<Case> addr_cases() { return added("addr", {3, 4}, {3}, {4}, addr, {"i", "j"}, "ij"); }

inline std::vector<Case> tensordot_cases() {
  using T = const Tensor&;
  return {product(
              "tensordot", {2, 3, 4}, {3, 4, 5}, [](T a, T b) { return tensordot(a, b); }, {"ijk", "jkl"}, "il"),
          product(
              "tensordot over chosen dimensions", {3, 2, 4}, {4, 5, 3},
              [](T a, T b) {
                return tensordot(a, b, {0, -1}, {2, 0});
              },
              {"aib", "bja"}, "ij"),
          product(
              "tensordot over none", {2, 3}, {4}, [](T a, T b) { return tensordot(a, b, 0); }, {"ij", "k"}, "ijk"),
          // Beside an extent of 1 the other one is summed over.
          {.name = "tensordot over an extent of 1",
           .inputs = {{{2, 1, 4}}, {{3, 4, 5}}},
           .run = [](const std::vector<Tensor>& in) { return std::vector{tensordot(in[0], in[1], 2)}; },
           .reference =
               [](const Arrays& in) {
                 const auto summed = reference::einsum({"jkl"}, "kl", {in[1]});
                 return Arrays{reference::einsum({"ijk", "kl"}, "il", {in[0], summed})};
               }},
          product(
              "tensordot over all", {2, 3}, {2, 3}, [](T a, T b) { return tensordot(a, b, 2); }, {"ij", "ij"}, "")};
}

inline Case chained(const std::string& name, const std::vector<Shape>& shapes, const std::vector<std::string>& terms,
                    const std::string& result) {
  Case example{.name = name,
               .inputs = {},
               .run = [](const std::vector<Tensor>& in) { return std::vector{multi_dot(in)}; },
               .reference = [=](const Arrays& in) { return Arrays{reference::einsum(terms, result, in)}; },
               .slack = 4};
  for (const auto& shape : shapes) example.inputs.push_back({shape});
  return example;
}
inline std::vector<Case> multi_dot_cases() {
  return {chained("multi_dot", {{3, 5}, {5, 2}, {2, 6}}, {"ij", "jk", "kl"}, "il"),
          chained("multi_dot of two", {{3, 5}, {5, 2}}, {"ij", "jk"}, "ik"),
          chained("multi_dot from a vector to a vector", {{3}, {3, 4}, {4, 2}, {2}}, {"i", "ij", "jk", "k"}, ""),
          chained("multi_dot from a vector", {{3}, {3, 4}, {4, 7}}, {"i", "ij", "jk"}, "k"),
          chained("multi_dot of four", {{2, 7}, {7, 1}, {1, 5}, {5, 3}}, {"ij", "jk", "kl", "lm"}, "im")};
}

inline std::vector<Case> kron_cases() {
  std::vector<Case> cases;
  for (const auto& [a, b] : {std::pair{Shape{2, 3}, Shape{4, 2}}, {{3}, {2, 2}}})
    cases.push_back(
        {.name = "kron of " + to_string(a),
         .inputs = {{a}, {b}},
         .run = [](const std::vector<Tensor>& in) { return std::vector{kron(in[0], in[1])}; },
         .reference =
             [](const Arrays& in) {
               const auto &x = in[0], &y = in[1];
               const auto rows = x.shape.rank() == 2 ? x.size(0) : 1, columns = x.size(-1);
               return Arrays{make_array({rows * y.size(0), columns * y.size(1)}, [&](const Coordinates& at) {
                 return x[at[0] / y.size(0) * columns + at[1] / y.size(1)] * y.at({at[0] % y.size(0), at[1] % y.size(1)});
               })};
             }});
  return cases;
}

inline Array cross_reference(const Array& a, const Array& b, int dim) {
  return make_array(a.shape, [&](const Coordinates& at) {
    const auto element = [&](const Array& x, std::int64_t ahead) {
      auto there = at;
      auto& place = there[static_cast<std::size_t>(dim)];
      place = (place + ahead) % 3;
      return x[linear_index(a.shape, there)];
    };
    return element(a, 1) * element(b, 2) - element(a, 2) * element(b, 1);
  });
}

inline const RegisterMeaning cross_meaning{
    "cross",
    {[](const Call& call) { return Arrays{cross_reference(call.in[0], call.in[1], static_cast<int>(call.integer("dim")))}; }}};

inline std::vector<Case> cross_cases() {
  std::vector<Case> cases;
  for (int dim : {1, 0, 2}) {
    const Shape shape = dim == 1 ? Shape{4, 3, 2} : dim == 0 ? Shape{3, 4} : Shape{5, 17, 3};
    cases.push_back({.name = "cross along " + std::to_string(dim),
                     .inputs = {{shape}, {shape}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{cross(in[0], in[1], dim)}; },
                     .reference = [=](const Arrays& in) { return Arrays{cross_reference(in[0], in[1], dim)}; }});
  }
  return cases;
}

inline const RegisterCases products_registered[] = {{"mm", mm_cases},
                                                    {"bmm", bmm_cases},
                                                    {"mv", mv_cases},
                                                    {"dot", dot_cases},
                                                    {"inner", inner_cases},
                                                    {"addmv", addmv_cases},
                                                    {"addr", addr_cases},
                                                    {"baddbmm", baddbmm_cases},
                                                    {"addbmm", addbmm_cases},
                                                    {"kron", kron_cases},
                                                    {"cross", cross_cases},
                                                    {"tensordot", tensordot_cases},
                                                    {"multi_dot", multi_dot_cases}};

}  // namespace clnet::testing
