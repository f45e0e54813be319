// Cases of pieces of tensors, and of tensors that are joined or broadcast together.
#pragma once

#include "tests/cases/shape/rearrange.h"
#include "tests/reference/shape/arrange.h"

namespace clnet::testing {

/// All pieces that `run` makes; `starts` and `counts` say where they lie along `dim`.
inline Case cut(const std::string& name, const Shape& from, int dim, std::vector<Tensor> (*run)(const Tensor&),
                const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, bool drop = false) {
  return {.name = name,
          .inputs = {{from}},
          .run = [=](const std::vector<Tensor>& in) { return run(in[0]); },
          .reference =
              [=](const Arrays& in) {
                Arrays pieces;
                for (const auto& [start, count] : ranges) {
                  pieces.push_back(reference::pick(in[0], dim, start, count, 1));
                  if (!drop) continue;
                  auto extents = pieces.back().shape.extents();
                  extents.erase(extents.begin() + dim);
                  pieces.back().shape = Shape(extents);
                }
                return pieces;
              }};
}

inline std::vector<Case> chunk_cases() {
  using T = const Tensor&;
  return {cut("chunk", {3, 5, 2}, 1, [](T x) { return chunk(x, 2, 1); }, {{0, 3}, {3, 2}}),
          cut("chunk into fewer", {5, 2}, 0, [](T x) { return chunk(x, 4); }, {{0, 2}, {2, 2}, {4, 1}}),
          cut("chunk into ones", {2, 3}, 1, [](T x) { return chunk(x, 9, -1); }, {{0, 1}, {1, 1}, {2, 1}}),
          cut("split by a length", {3, 5}, 1, [](T x) { return split(x, 2, 1); }, {{0, 2}, {2, 2}, {4, 1}})};
}

inline std::vector<Case> tensor_split_cases() {
  using T = const Tensor&;
  return {cut("tensor_split", {7, 2}, 0, [](T x) { return tensor_split(x, 3); }, {{0, 3}, {3, 2}, {5, 2}}),
          cut("tensor_split at places", {2, 7}, 1,
              [](T x) {
                return tensor_split(x, std::vector<std::int64_t>{2, 2, -1}, 1);
              },
              {{0, 2}, {2, 0}, {2, 4}, {6, 1}})};
}

inline std::vector<Case> unbind_cases() {
  using T = const Tensor&;
  return {cut(
              "unbind", {2, 3, 4}, 0, [](T x) { return unbind(x); }, {{0, 1}, {1, 1}}, true),
          cut(
              "unbind the last", {2, 3}, 1, [](T x) { return unbind(x, -1); }, {{0, 1}, {1, 1}, {2, 1}}, true)};
}

inline std::vector<Case> select_cases() {
  using T = const Tensor&;
  return {cut(
              "select", {2, 3, 4}, 1, [](T x) { return std::vector{select(x, 1, 2)}; }, {{2, 1}}, true),
          cut(
              "select from the end", {5}, 0, [](T x) { return std::vector{select(x, 0, -1)}; }, {{4, 1}}, true)};
}

/// The inputs with `shape`s of their own, then joined.
inline Case joined(const std::string& name, const std::vector<Shape>& from, const std::vector<Shape>& as, int dim,
                   Tensor (*run)(const std::vector<Tensor>&)) {
  Case result{.name = name,
              .inputs = {},
              .run = [=](const std::vector<Tensor>& in) { return std::vector{run(in)}; },
              .reference =
                  [=](const Arrays& in) {
                    Arrays parts = in;
                    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].shape = as[i];
                    return Arrays{reference::concat(parts, dim)};
                  }};
  for (const auto& shape : from) result.inputs.push_back({shape});
  return result;
}

inline std::vector<Case> hstack_cases() {
  return {joined("hstack", {{2, 3}, {2, 1}}, {{2, 3}, {2, 1}}, 1, hstack),
          joined("hstack lines", {{3}, {}}, {{3}, {1}}, 0, hstack)};
}
inline std::vector<Case> vstack_cases() {
  return {joined("vstack", {{2, 3}, {3}}, {{2, 3}, {1, 3}}, 0, vstack),
          joined("vstack scalars", {{}, {}}, {{1, 1}, {1, 1}}, 0, vstack)};
}
inline std::vector<Case> dstack_cases() {
  return {joined("dstack", {{2, 3}, {2, 3, 2}}, {{2, 3, 1}, {2, 3, 2}}, 2, dstack),
          joined("dstack lines", {{3}, {3}}, {{1, 3, 1}, {1, 3, 1}}, 2, dstack)};
}

inline std::vector<Case> broadcast_tensors_cases() {
  return {{.name = "broadcast_tensors",
           .inputs = {{{3, 1}}, {{1, 4}}},
           .run = [](const std::vector<Tensor>& in) { return broadcast_tensors(in); },
           .reference =
               [](const Arrays& in) {
                 return Arrays{expand_reference(in[0], {3, 4}), expand_reference(in[1], {3, 4})};
               }}};
}

inline std::vector<Case> meshgrid_cases() {
  std::vector<Case> cases;
  for (auto indexing : {Indexing::ij, Indexing::xy})
    cases.push_back({.name = indexing == Indexing::ij ? "meshgrid" : "meshgrid of images",
                     .inputs = {{{3}}, {{4}}, {{2}}},
                     .run = [=](const std::vector<Tensor>& in) { return meshgrid(in, indexing); },
                     .reference =
                         [=](const Arrays& in) {
                           const bool swapped = indexing == Indexing::xy;
                           Arrays grids;
                           for (std::size_t i = 0; i < 3; ++i)
                             grids.push_back(make_array(swapped ? Shape{4, 3, 2} : Shape{3, 4, 2}, [&](const Coordinates& at) {
                               return in[i][at[swapped && i < 2 ? 1 - i : i]];
                             }));
                           return grids;
                         }});
  return cases;
}

inline const RegisterCases pieces_registered[] = {{"chunk", chunk_cases},      {"tensor_split", tensor_split_cases},
                                                  {"unbind", unbind_cases},    {"select", select_cases},
                                                  {"hstack", hstack_cases},    {"vstack", vstack_cases},
                                                  {"dstack", dstack_cases},    {"broadcast_tensors", broadcast_tensors_cases},
                                                  {"meshgrid", meshgrid_cases}};

}  // namespace clnet::testing
