// Who holds an output of a node: handles and inputs count, and what only keeps a node alive does not.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/graph/node.h"

using namespace clnet;

namespace {

std::pair<unsigned, unsigned> holders_of(const Tensor& tensor) {
  const auto counts = node_of(tensor)->values[static_cast<std::size_t>(output_of(tensor))].holders.now();
  return {counts.handles, counts.inputs};
}
using Counts = std::pair<unsigned, unsigned>;

}  // namespace

TEST_CASE("each handle counts for as long as it refers to the output") {
  Tensor x = Tensor::from({1.0F, 2.0F});
  const Tensor seen = uncounted(x);
  CHECK(holders_of(seen) == Counts{1, 0});
  {
    std::vector<Tensor> list(3, x);
    CHECK(holders_of(seen) == Counts{4, 0});
    const Tensor moved = std::move(list[1]);
    CHECK(holders_of(seen) == Counts{4, 0});
    list[0] = list[2];
    CHECK(holders_of(seen) == Counts{4, 0});
    list[2] = Tensor::from({3.0F});
    CHECK(holders_of(seen) == Counts{3, 0});
    auto& same = list[0];
    list[0] = same;
    list[0] = std::move(same);
    CHECK(holders_of(seen) == Counts{3, 0});
  }
  CHECK(holders_of(seen) == Counts{1, 0});
  x = {};
  CHECK(holders_of(seen) == Counts{0, 0});
}

TEST_CASE("inputs of nodes count as such, for as long as there is the node") {
  const Tensor x = Tensor::from({1.0F, 2.0F});
  {
    const Tensor y = x * x;
    CHECK(holders_of(x) == Counts{1, 2});
    CHECK(holders_of(y) == Counts{1, 0});
    const Tensor copy = node_of(y)->inputs[0];
    CHECK(holders_of(x) == Counts{2, 2});
    const Node other(*node_of(y), {x, copy});
    CHECK(holders_of(x) == Counts{2, 4});
  }
  CHECK(holders_of(x) == Counts{1, 0});
  CHECK_THROWS(reshape(x, {7}));
  CHECK(holders_of(x) == Counts{1, 0});
}

TEST_CASE("outputs of a node are held one by one") {
  const auto node = std::make_shared<Node>(nullptr, Tensors{}, Specs(3, {Shape{2}, Dtype::f32}));
  Tensor first = tensor_of(node, 0);
  const Tensor last = tensor_of(node, 2), read = last + last;
  CHECK(holders_of(uncounted(node, 0)) == Counts{1, 0});
  CHECK(holders_of(uncounted(node, 1)) == Counts{0, 0});
  CHECK(holders_of(uncounted(node, 2)) == Counts{1, 2});
  first = last;
  CHECK(holders_of(uncounted(node, 0)) == Counts{0, 0});
  CHECK(holders_of(uncounted(node, 2)) == Counts{2, 2});
}

TEST_CASE("what is uncounted stays so where it is moved, and its copies are handles") {
  const Tensor x = Tensor::from({1.0F, 2.0F});
  std::vector<Tensor> list;
  for (int i = 0; i < 10; ++i) list.push_back(uncounted(x));
  auto moved = std::move(list);
  const auto pointer = node_of(x);
  CHECK(holders_of(x) == Counts{1, 0});
  {
    const auto copies = moved;
    CHECK(holders_of(x) == Counts{11, 0});
    const Tensor y = moved[0] + moved[1];
    CHECK(holders_of(x) == Counts{11, 2});
  }
  moved[0] = x;
  CHECK(holders_of(x) == Counts{2, 0});
}

TEST_CASE("a speculative value is taken away, and one that was asked for is not") {
  ValueCell cell;
  const auto make = [] { return std::make_shared<HostValue>(std::vector<std::byte>(8)); };
  std::shared_ptr<Value> value = make();
  const std::weak_ptr<Value> known = value, another = make();
  CHECK(cell.exchange(nullptr, value) == value);
  CHECK(cell);
  CHECK(cell.is_speculative());
  CHECK(cell.get() == value);
  CHECK(cell.asked() == nullptr);
  SECTION("only where nothing else keeps it alive") {
    CHECK_FALSE(cell.take_speculative(known, true));
    CHECK_FALSE(cell.take_speculative({}, true));
    value.reset();
    CHECK_FALSE(cell.take_speculative(another, true));
    CHECK(cell.take_speculative(known, true));
    CHECK_FALSE(cell);
    CHECK(known.expired());
  }
  SECTION("whatever else keeps it alive") {
    CHECK(cell.take_speculative(known, false) == value);
    CHECK_FALSE(cell);
    CHECK_FALSE(cell.ask());
  }
  SECTION("once it was asked for, it stays") {
    CHECK(cell.ask(make()));
    CHECK(cell.is_asked());
    CHECK(cell.asked() == value);
    CHECK_FALSE(cell.take_speculative(known, false));
    CHECK(cell.exchange(value.get(), make()) != value);
    CHECK(cell.is_asked());
  }
}
