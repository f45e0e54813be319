// Cases of einsum().
#pragma once

#include "tests/reference/matmul/einsum.h"

namespace clnet::testing {

inline std::vector<Case> einsum_cases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& equation, const std::vector<Shape>& shapes, const std::vector<std::string>& terms,
                       const std::string& result) {
    std::vector<Input> inputs;
    for (const auto& shape : shapes) inputs.push_back({shape});
    cases.push_back({.name = "einsum " + equation,
                     .inputs = inputs,
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{einsum(equation, in)}; },
                     .reference = [=](const Arrays& in) { return Arrays{reference::einsum(terms, result, in)}; }});
  };
  add("ij,jk->ik", {{5, 7}, {7, 3}}, {"ij", "jk"}, "ik");
  add("ij,kj->ki", {{5, 7}, {3, 7}}, {"ij", "kj"}, "ki");
  add("ji,jk", {{7, 5}, {7, 3}}, {"ji", "jk"}, "ik");
  add("b i j, b j k -> b i k", {{4, 5, 7}, {4, 7, 3}}, {"bij", "bjk"}, "bik");
  add("bhid,bhjd->bhij", {{2, 3, 5, 8}, {2, 3, 6, 8}}, {"bhid", "bhjd"}, "bhij");
  add("bihd,bjhd->bhij", {{2, 5, 3, 8}, {2, 6, 3, 8}}, {"bihd", "bjhd"}, "bhij");
  add("i,i->", {{9}, {9}}, {"i", "i"}, "");
  add("i,j->ji", {{4}, {6}}, {"i", "j"}, "ji");
  add("ij,ij->ij", {{4, 6}, {4, 6}}, {"ij", "ij"}, "ij");
  add("ij->ji", {{4, 6}}, {"ij"}, "ji");
  add("ij->j", {{4, 6}}, {"ij"}, "j");
  add("ij->", {{4, 6}}, {"ij"}, "");
  add("ij", {{4, 6}}, {"ij"}, "ij");
  add("ba", {{4, 6}}, {"ba"}, "ab");
  add("ii->i", {{5, 5}}, {"ii"}, "i");
  add("ii", {{5, 5}}, {"ii"}, "");
  add("iji->ji", {{5, 3, 5}}, {"iji"}, "ji");
  add("iii->i", {{3, 3, 3}}, {"iii"}, "i");
  add("bii,bij->bj", {{2, 5, 5}, {2, 5, 3}}, {"bii", "bij"}, "bj");
  add("ij,kl->jl", {{3, 4}, {5, 6}}, {"ij", "kl"}, "jl");
  add("ij,jk,kl->il", {{3, 4}, {4, 5}, {5, 6}}, {"ij", "jk", "kl"}, "il");
  add("i,ij,j", {{4}, {4, 5}, {5}}, {"i", "ij", "j"}, "");
  add("bn,anm,bm->ba", {{2, 5}, {4, 5, 6}, {2, 6}}, {"bn", "anm", "bm"}, "ba");
  add("aBc,cB->Ba", {{2, 3, 4}, {4, 3}}, {"aBc", "cB"}, "Ba");
  add("ij,jk", {{4, 1}, {6, 5}}, {"ij", "jk"}, "ik");
  add("bij,bjk->bik", {{1, 4, 6}, {3, 6, 5}}, {"bij", "bjk"}, "bik");
  add("ij,ij->ij", {{4, 1}, {1, 6}}, {"ij", "ij"}, "ij");
  add("...ij,...jk->...ik", {{2, 3, 4, 5}, {3, 5, 6}}, {"xyij", "yjk"}, "xyik");
  add("i...,j...", {{4, 3, 2}, {5, 3, 2}}, {"ixy", "jxy"}, "xyij");
  add("...,...->...", {{3, 1}, {2, 1, 4}}, {"yz", "xyz"}, "xyz");
  add("...ii->...i", {{2, 3, 4, 4}}, {"xyii"}, "xyi");
  add("...i->i...", {{2, 3, 4}}, {"xyi"}, "ixy");
  add("ij...,jk->ik...", {{2, 3}, {3, 4}}, {"ij", "jk"}, "ik");
  return cases;
}

}  // namespace clnet::testing
