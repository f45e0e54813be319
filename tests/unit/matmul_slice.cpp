// Products of which one part alone is read.
#include "lib/ops/matmul/matmul_slice.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/lower/rewrite.h"
#include "tests/support/leaf.h"

using namespace clnet;
using namespace clnet::exec;
using clnet::ops::matmul_slice;
using clnet::test::leaf;

namespace {

Subgraph rewritten_of(const std::vector<Tensor>& wanted) { return rewritten(Subgraph(collect(wanted)), {}); }

/// The names and outputs of the nodes that are computed, one after the other.
std::string computed(const Subgraph& graph) {
  std::string text;
  for (const auto& node : graph.nodes())
    if (!node->is_view()) text += std::string(node->op->name()) + ' ' + to_string(node->outputs[0].shape) + ' ';
  return text;
}

const MatmulOptions second_transposed{.transpose_a = false, .transpose_b = true};

}  // namespace

TEST_CASE("speculative outputs, as they are there") {
  const Tensor a = leaf({32, 64}), b = exp(leaf({96, 64}));
  const Tensor product = matmul(a, b, second_transposed), other = exp(leaf({5})), part = slice(product, 1, 0, 48),
               result = tanh(part) + 1.0;
  auto work = collect(std::vector{result, other});
  const auto place = [&](const Tensor& tensor) {
    return static_cast<std::uint32_t>(std::find(work.nodes.begin(), work.nodes.end(), node_of(tensor)) - work.nodes.begin());
  };
  work.speculative = {{place(part), 0}, {place(other), 0}};
  const Subgraph whole(work);
  const auto less = matmul_slice().nodes(whole);
  REQUIRE(less);
  CHECK(computed(*less) == "exp [96, 64] matmul [32, 48] exp [5] tanh [32, 48] add [32, 48] ");
  REQUIRE(less->speculative().size() == 2);
  CHECK(less->speculative()[0].tensor.shape() == Shape{32, 48});
  CHECK(node_of(less->speculative()[0].tensor)->op->name() == "matmul");
  CHECK(less->speculative()[0].of == work.speculative[0]);
  CHECK(less->speculative()[1].tensor.same(less->wanted()[1]));
  // What was given is as before.
  CHECK(computed(whole) == computed(Subgraph(work)));
  CHECK(node_of(part)->inputs[0].same(product));
}

TEST_CASE("columns of a product are a product with a range of its second factor") {
  const Tensor a = leaf({32, 64}), b = leaf({48, 64});
  const Tensor part = slice(matmul(a, b, second_transposed), 1, 16, 40);
  const auto graph = rewritten_of({part});
  REQUIRE(computed(graph) == "matmul [32, 24] ");
  const auto& product = *node_of(graph.wanted()[0]);
  CHECK(product.inputs[0].same(graph.leaves()[0]));
  const auto range = root_of(product.inputs[1]);
  CHECK(range.tensor.same(graph.leaves()[1]));
  CHECK(range.offset == 16 * 64);
  CHECK(product.inputs[1].shape() == Shape{24, 64});
}

TEST_CASE("a part of a part's product, and what else reads it") {
  const Tensor a = leaf({32, 64}), b = leaf({96, 64}), c = leaf({64, 48});
  const Tensor first = slice(matmul(a, b, second_transposed), 1, 48, 96);
  const Tensor second = slice(matmul(first, c, second_transposed), 1, 0, 32);
  const auto graph = rewritten_of({second, exp(first)});
  CHECK(computed(graph) == "matmul [32, 48] matmul [32, 32] exp [32, 48] ");
}

TEST_CASE("gradients of a joined input of which one part needs none") {
  const Tensor x = leaf({32, 64}), h = leaf({32, 64}), w = leaf({128, 256});
  const auto text = computed(rewritten_of(gradients(sum(matmul(concat({x, exp(h)}, 1), w)), {h})));
  CHECK(text.find("matmul [32, 64]") != std::string::npos);
  CHECK(text.find("matmul [32, 128]") == std::string::npos);
}

TEST_CASE("who holds a product changes nothing: the part is made as without") {
  auto work = collect(std::vector{slice(matmul(leaf({32, 64}), leaf({48, 64}), second_transposed), 1, 0, 24)});
  work.speculative.push_back({0, 0});
  const auto graph = rewritten(Subgraph(work), {});
  CHECK(computed(graph) == "matmul [32, 24] ");
  CHECK(graph.speculative().empty());
}

TEST_CASE("what planning makes is no operation of the program's") {
  const Tensor part = slice(matmul(leaf({32, 64}), leaf({48, 64}), second_transposed), 1, 0, 24);
  const auto work = collect(std::vector{part});
  // CLNET_EAGER would evaluate it at once.
  static int told;
  told = 0;
  const auto before = std::exchange(node_made, [](const Tensor&) { ++told; });
  const auto graph = rewritten(Subgraph(work), {});
  node_made = before;
  CHECK(told == 0);
  CHECK(computed(graph) == "matmul [32, 24] ");
}

TEST_CASE("products that stay whole") {
  const Tensor a = leaf({32, 64}), b = leaf({48, 64});
  const Tensor product = matmul(a, b, second_transposed);
  const auto part = [&](std::int64_t start, std::int64_t stop) { return slice(product, 1, start, stop); };
  SECTION("as others read more") {
    CHECK(computed(rewritten_of({part(0, 24), part(24, 48)})).find("[32, 48]") != std::string::npos);
  }
  SECTION("as all of it is asked for") {
    CHECK(computed(rewritten_of({part(0, 24), product})).find("[32, 48]") != std::string::npos);
  }
  SECTION("as most of it is read") { CHECK(computed(rewritten_of({part(0, 40)})).find("matmul [32, 48]") != std::string::npos); }
  SECTION("as the part is no range of the factor") {
    const Tensor columns = slice(matmul(a, leaf({64, 48})), 1, 0, 24);
    CHECK(computed(rewritten_of({columns})).find("matmul [32, 48]") != std::string::npos);
  }
  SECTION("as it is of a batch") {
    const Tensor columns = slice(matmul(leaf({2, 32, 64}), leaf({2, 48, 64}), second_transposed), 2, 0, 24);
    CHECK(computed(rewritten_of({columns})).find("matmul [2, 32, 48]") != std::string::npos);
  }
}
