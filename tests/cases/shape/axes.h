// Cases of dimensions that are moved, dropped, split and turned.
#pragma once

#include "tests/cases/shape/rearrange.h"

namespace clnet::testing {

/// The same elements in their order, and a sum, which makes the view an operand of a kernel.
inline Case renamed(const std::string& name, const Shape& from, const Shape& to, Tensor (*call)(const Tensor&)) {
  return {.name = name,
          .inputs = {{from}},
          .run =
              [=](const std::vector<Tensor>& in) {
                return std::vector{call(in[0]), call(in[0]) + call(in[0] + in[0])};
              },
          .reference =
              [=](const Arrays& in) {
                Array same(to, in[0].values), three(to, in[0].values);
                for (auto& value : three.values) value *= 3;
                return Arrays{same, three};
              }};
}

inline std::vector<Case> movedim_cases() {
  using T = const Tensor&;
  return {arranged(
              "movedim", {2, 3, 4}, {3, 4, 2}, [](T x) { return movedim(x, 0, 2); },
              [](const Coordinates& at) {
                return Coordinates{at[2], at[0], at[1]};
              }),
          arranged(
              "movedim of two", {2, 3, 4, 5}, {5, 2, 4, 3},
              [](T x) {
                return movedim(x, {1, -1}, {-1, 0});
              },
              [](const Coordinates& at) {
                return Coordinates{at[1], at[3], at[2], at[0]};
              })};
}

inline std::vector<Case> unflatten_cases() {
  using T = const Tensor&;
  return {renamed("unflatten", {3, 8}, {3, 2, 4},
                  [](T x) {
                    return unflatten(x, 1, {2, -1});
                  }),
          renamed("unflatten in three", {8, 3}, {2, 1, 4, 3},
                  [](T x) {
                    return unflatten(x, -2, {2, 1, 4});
                  }),
          renamed("squeeze of all", {1, 3, 1, 2}, {3, 2}, [](T x) { return squeeze(x); })};
}

inline std::vector<Case> fliplr_cases() {
  return {arranged("fliplr", {3, 4}, {3, 4}, fliplr, [](const Coordinates& at) { return Coordinates{at[0], 3 - at[1]}; })};
}
inline std::vector<Case> flipud_cases() {
  return {arranged("flipud", {3, 4}, {3, 4}, flipud, [](const Coordinates& at) { return Coordinates{2 - at[0], at[1]}; })};
}

inline std::vector<Case> rot90_cases() {
  using T = const Tensor&;
  return {arranged(
              "rot90", {3, 4}, {4, 3}, [](T x) { return rot90(x); },
              [](const Coordinates& at) {
                return Coordinates{at[1], 3 - at[0]};
              }),
          arranged(
              "rot90 twice", {3, 4}, {3, 4}, [](T x) { return rot90(x, 2); },
              [](const Coordinates& at) {
                return Coordinates{2 - at[0], 3 - at[1]};
              }),
          arranged(
              "rot90 back", {2, 3, 4}, {2, 4, 3},
              [](T x) {
                return rot90(x, -1, {1, 2});
              },
              [](const Coordinates& at) {
                return Coordinates{at[0], 2 - at[2], at[1]};
              })};
}

inline std::vector<Case> diag_embed_cases() {
  using T = const Tensor&;
  return {arranged(
              "diag_embed", {2, 3}, {2, 3, 3}, [](T x) { return diag_embed(x); },
              [](const Coordinates& at) {
                return at[1] == at[2] ? std::optional(Coordinates{at[0], at[1]}) : std::nullopt;
              }),
          arranged(
              "diag_embed above", {2, 3}, {5, 2, 5}, [](T x) { return diag_embed(x, 2, 0, 2); },
              [](const Coordinates& at) {
                return at[2] == at[0] + 2 ? std::optional(Coordinates{at[1], at[0]}) : std::nullopt;
              }),
          arranged(
              "diag_embed below", {2, 3}, {2, 4, 4}, [](T x) { return diag_embed(x, -1); },
              [](const Coordinates& at) {
                return at[1] == at[2] + 1 ? std::optional(Coordinates{at[0], at[2]}) : std::nullopt;
              }),
          arranged(
              "diag_embed turned", {3}, {4, 4}, [](T x) { return diag_embed(x, 1, 1, 0); },
              [](const Coordinates& at) { return at[0] == at[1] + 1 ? std::optional(Coordinates{at[1]}) : std::nullopt; })};
}

inline std::vector<Case> atleast_1d_cases() {
  return {renamed("atleast_1d of a scalar", {}, {1}, atleast_1d), renamed("atleast_1d", {2, 3}, {2, 3}, atleast_1d)};
}
inline std::vector<Case> atleast_2d_cases() {
  return {renamed("atleast_2d", {3}, {1, 3}, atleast_2d), renamed("atleast_2d of a scalar", {}, {1, 1}, atleast_2d)};
}
inline std::vector<Case> atleast_3d_cases() {
  return {renamed("atleast_3d", {3}, {1, 3, 1}, atleast_3d), renamed("atleast_3d of a matrix", {2, 3}, {2, 3, 1}, atleast_3d),
          renamed("atleast_3d of a scalar", {}, {1, 1, 1}, atleast_3d)};
}

inline const RegisterCases axes_registered[] = {
    {"movedim", movedim_cases},       {"unflatten", unflatten_cases},   {"fliplr", fliplr_cases},
    {"flipud", flipud_cases},         {"rot90", rot90_cases},           {"diag_embed", diag_embed_cases},
    {"atleast_1d", atleast_1d_cases}, {"atleast_2d", atleast_2d_cases}, {"atleast_3d", atleast_3d_cases}};

}  // namespace clnet::testing
