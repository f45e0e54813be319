// Tensors in NumPy's files and back.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "clnet/error.h"
#include "clnet/io.h"
#include "clnet/ops.h"
#include "tests/support/temporary.h"

namespace clnet::io {
namespace {

using Catch::Contains;

/// A tensor of each dtype.
StateDict some_tensors() {
  StateDict all;
  for (const auto dtype :
       {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64, Dtype::i8, Dtype::u8, Dtype::boolean}) {
    const Spec spec{{2, 3}, dtype};
    std::vector<char> bytes(static_cast<std::size_t>(spec.bytes()));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(dtype == Dtype::boolean ? i % 2 : 7 * i + 1);
    all.emplace_back(std::string(to_string(dtype)), Tensor::from_bytes(bytes.data(), bytes.size(), spec));
  }
  all.emplace_back("a.b", Tensor::from(std::vector<float>{2.5F}, {}));
  all.emplace_back("none", Tensor::from(std::vector<std::int64_t>{}, {0, 4}));
  return all;
}

std::vector<char> content_of(const Tensor& tensor) {
  std::vector<char> bytes(static_cast<std::size_t>(tensor.spec().bytes()));
  tensor.to_bytes(bytes.data(), bytes.size());
  return bytes;
}

void require_same(const Tensor& got, const Tensor& wanted) {
  if (wanted.dtype() == Dtype::bf16) return require_same(got, wanted.to(Dtype::f32));
  REQUIRE(got.spec() == wanted.spec());
  CHECK(content_of(got) == content_of(wanted));
}

TEST_CASE("tensors in .npy files return as they were") {
  const test::Folder folder;
  for (const auto& [name, tensor] : some_tensors()) {
    INFO(name);
    save_npy(folder / "a.npy", tensor);
    require_same(load_npy(folder / "a.npy"), tensor);
  }
  save_npz(folder / "a.npz", {{"x", Tensor::from({0.1, -1e300}, {2}, Dtype::f64)}});
  CHECK(load_npz(folder / "a.npz")[0].second.to_vector<double>() == std::vector{0.1, -1e300});
  CHECK(load_npz(folder / "a.npz", Dtype::f32)[0].second.to_vector<float>() == std::vector{0.1F, -INFINITY});
  save_npy(folder / "a.npy", Tensor::from(std::vector<float>{1, 2}, {2}) * 2.0);
  const auto file = test::content(folder / "a.npy");
  // As numpy.save() writes it: data begin at a multiple of 64.
  CHECK(file.size() == 128 + 8);
  CHECK(file.substr(10, 60) == "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }   ");
  CHECK(file.substr(0, 10) == std::string("\x93NUMPY\1\0v\0", 10));
  CHECK(file[127] == '\n');
}

TEST_CASE("tensors in .npz files return as they were, in their order") {
  const test::Folder folder;
  const auto tensors = some_tensors();
  for (const bool compressed : {false, true}) {
    save_npz(folder / "a.npz", tensors, {.compressed = compressed});
    const auto back = load_npz(folder / "a.npz");
    REQUIRE(back.size() == tensors.size());
    for (std::size_t i = 0; i < back.size(); ++i) {
      CHECK(back[i].first == tensors[i].first);
      require_same(back[i].second, tensors[i].second);
    }
  }
  const auto zeros = Tensor::from(std::vector<float>(1 << 16), {1 << 16});
  save_npz(folder / "b.npz", {{"zeros", zeros}}, {.compressed = true});
  CHECK(std::filesystem::file_size(folder / "b.npz") < 2000);
  require_same(load_npz(folder / "b.npz")[0].second, zeros);
  save_npz(folder / "c.npz", {});
  CHECK(load_npz(folder / "c.npz").empty());
}

TEST_CASE("a .npz file that cannot be written says why, and the old one stays") {
  const test::Folder folder;
  const auto one = Tensor::from(std::vector<float>{1}, {1});
  save_npz(folder / "a.npz", {{"w", one}});
  const auto before = test::content(folder / "a.npz");
  CHECK_THROWS_WITH(save_npz(folder / "a.npz", {{"w", one}, {"w", one}}), Contains("\"w\" is given twice"));
  CHECK_THROWS_WITH(save_npz(folder / "a.npz", {{"", one}}), Contains("0 bytes, expected 1 to 1024"));
  CHECK_THROWS_WITH(save_npz(folder / "a.npz", {{"v", Tensor()}}), Contains("\"v\" is not defined"));
  CHECK_THROWS_AS(save_npz(folder / "no/a.npz", {{"w", one}}), FileError);
  CHECK_THROWS_WITH(save_npy(folder / "a.npz", Tensor()), Contains("not defined"));
  CHECK(test::content(folder / "a.npz") == before);
}

}  // namespace
}  // namespace clnet::io
