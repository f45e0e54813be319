// The order that groups of operations keep, and what must hold of the groups.
#include "lib/exec/fuse/grouping.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <list>
#include <random>

#include "clnet/clnet.h"
#include "lib/base/planning_steps.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/fuse/check.h"
#include "tests/support/leaf.h"

using namespace clnet;
using namespace clnet::exec;
using Catch::Matchers::Contains;
using clnet::test::leaf;

namespace {

DeviceInfo vector_device() {
  DeviceInfo info;
  info.compute_units = 4;
  info.max_work_group_size = 256;
  info.prefers_vector_kernels = true;
  return info;
}

/// Groups, and the subgraph whose nodes they are.
struct Fused {
  explicit Fused(const std::vector<Tensor>& wanted) : graph(collect(wanted)), groups(fuse(graph, vector_device(), true)) {}
  Subgraph graph;
  std::vector<Group> groups;
};

}  // namespace

TEST_CASE("an order keeps its labels apart however things are moved") {
  constexpr std::size_t count = 300;
  Order order(count);
  std::list<std::size_t> want;
  for (std::size_t i = 0; i < count; ++i) want.push_back(i);
  std::mt19937 random(1);
  for (int move = 0; move < 20000; ++move) {
    // Mostly to the same place: that is where labels run out.
    const std::size_t what = random() % count, place = move % 4 ? 7 : random() % count;
    if (what == place) continue;
    const bool behind = random() % 2;
    want.remove(what);
    auto at = std::find(want.begin(), want.end(), place);
    want.insert(behind ? std::next(at) : at, what);
    behind ? order.move_behind(what, place) : order.move_before(what, place);
  }
  for (auto at = want.begin(); std::next(at) != want.end(); ++at) {
    REQUIRE(order.before(*at, *std::next(at)));
    REQUIRE_FALSE(order.before(*std::next(at), *at));
  }
}

TEST_CASE("groups with a path between them are not joined, others are wherever they stand") {
  const Tensor x = leaf({4, 4}), a = exp(x), b = softmax(a, 1), c = a + b, d = sin(x), e = c + d;
  const std::vector<Tensor> wanted{e};
  const auto work = collect(wanted);
  const Subgraph graph(work);
  Grouping grouping(graph);
  const auto at = [&](const Tensor& tensor) {
    return static_cast<NodeNumber>(std::find(work.nodes.begin(), work.nodes.end(), node_of(tensor)) - work.nodes.begin());
  };
  CHECK_FALSE(grouping.joint(at(a), at(c)));
  for (const auto& [from, to] : {std::pair(c, e), std::pair(d, e)}) {
    const auto joint = grouping.joint(grouping.writer(at(from)), grouping.writer(at(to)));
    REQUIRE(joint);
    grouping.join(grouping.writer(at(from)), grouping.writer(at(to)), *joint);
  }
  CHECK_FALSE(grouping.joint(grouping.writer(at(a)), grouping.writer(at(e))));
  grouping.find_written();
  CHECK_NOTHROW(grouping.check());
  const auto order = grouping.ordered();
  CHECK(order == std::vector{at(a), at(b), at(e)});
}

TEST_CASE("a value that is read as a part is not computed by the kernel that reads it") {
  const Tensor x = leaf({4, 6}), y = exp(x), z = y * 2.0 - slice(y, 0, 0, 1);
  const Fused fused({z});
  CHECK(fused.groups.size() == 2);
  CHECK_NOTHROW(check_groups(fused.groups, fused.graph));
}

TEST_CASE("what is wrong with groups is named") {
  const Tensor x = leaf({8, 6}), y = exp(x), z = sum(softmax(y, 1) * y), w = reshape(y, {48});
  const Fused fused({z, w});
  const auto& [graph, groups] = fused;
  REQUIRE(groups.size() > 1);
  CHECK_NOTHROW(check_groups(groups, graph));
  auto swapped = groups;
  std::swap(swapped.front(), swapped.back());
  CHECK_THROWS_WITH(check_groups(swapped, graph), Contains("read before it is written"));
  auto twice = groups;
  twice.push_back(groups.front());
  CHECK_THROWS_WITH(check_groups(twice, graph), Contains("written twice"));
  auto lost = groups;
  lost.pop_back();
  CHECK_THROWS_WITH(check_groups(lost, graph), Contains("asked for and written by none"));
}

TEST_CASE("random graphs are grouped so that every group finds what it reads") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<Tensor> values{leaf({6, 4}), leaf({4}), leaf({6, 1})}, wanted;
    const auto any = [&] { return values[random() % values.size()]; };
    for (int k = 0; k < 60; ++k) {
      const Tensor a = any(), b = any();
      Tensor y;
      switch (random() % 9) {
        case 0: y = a + b; break;
        case 1: y = a * b; break;
        case 2: y = exp(a); break;
        case 3: y = softmax(a, -1); break;
        case 4: y = sum(a, {0}, true); break;
        case 5: y = relu(a) - 1.0; break;
        case 6: y = a.size(0) > 1 ? slice(a, 0, 1, a.size(0)) : a; break;
        case 7: y = a.rank() == 2 ? reshape(reshape(a, {a.numel()}), a.shape()) : a; break;
        default: y = matmul(expand(leaf({1, 1}), {6, 4}), expand(leaf({1, 1}), {4, 4})); break;
      }
      if (y.rank() != 2 || y.size(0) != 6) y = y.rank() == 2 && y.size(0) == 1 ? y : Tensor();
      if (!y.defined()) continue;
      values.push_back(y);
      if (random() % 6 == 0) wanted.push_back(y);
    }
    wanted.push_back(values.back());
    std::vector<Tensor> open;
    for (const auto& tensor : wanted)
      if (!value_of(tensor)) open.push_back(tensor);
    CHECK_NOTHROW(Fused(open));  // which checks them
  }
}
