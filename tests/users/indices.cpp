// unique, bincount, searchsorted, x[mask] and nonzero, against values worked out by hand.
#include <clnet/clnet.h>

#include <iostream>

using namespace clnet;

static int failed = 0;
template <typename T>
void check(const char* name, const Tensor& got, const std::vector<T>& expected) {
  if (got.to_vector<T>() == expected) return;
  std::cout << name << ": " << got << '\n';
  ++failed;
}

int main() {
  using Ints = std::vector<std::int64_t>;
  const Tensor x = Tensor::from({3.0F, -1.0F, 3.0F, 7.0F, -1.0F, 3.0F});
  const auto kinds = x.unique();
  check("unique", kinds.values, std::vector<float>{-1, 3, 7});
  check("inverse", kinds.inverse, Ints{1, 0, 1, 2, 0, 1});
  check("counts", kinds.counts, Ints{2, 3, 1});

  const Tensor i = Tensor::from(Ints{0, 4, 1, 4, 4}, {5});
  check("bincount", bincount(i), Ints{1, 1, 0, 0, 3});
  check("weighted", bincount(i, Tensor::from({0.5F, 1.0F, 2.0F, 4.0F, 8.0F}), 7), std::vector<float>{0.5F, 2, 0, 0, 13, 0, 0});

  const Tensor edges = Tensor::from({1.0F, 3.0F, 5.0F}), at = Tensor::from({0.0F, 3.0F, 4.0F, 9.0F});
  check("left", searchsorted(edges, at), Ints{0, 1, 2, 3});
  check("right", searchsorted(edges, at, true), Ints{0, 2, 2, 3});

  const Tensor m = x.reshape({2, 3});
  check("mask", m[m > 0.0], std::vector<float>{3, 3, 7, 3});
  check("rows", m[m.sum({1}) > 6.0], std::vector<float>{7, -1, 3});
  check("nonzero", (m > 0.0).nonzero(), Ints{0, 0, 0, 2, 1, 0, 1, 2});
  check("row unique", Tensor::from(Ints{2, 1, 2, 1, 0, 9}, {3, 2}).unique(0).values, Ints{0, 9, 2, 1});
  // The gradient of a choice by a mask is 1 where it is true.
  check("gradient", gradients(m[m > 0.0].sum(), {m})[0], std::vector<float>{1, 0, 1, 1, 0, 1});
  std::cout << (failed == 0 ? "right\n" : "WRONG\n");
}
