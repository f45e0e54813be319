// A call that changes several slots changes all of them or, where something throws, none.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/nn/parameter.h"
#include "tests/ops/values.h"
#include "tests/support/second_device.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// Makes values that cannot be computed as long as it stands.
struct Obstacle {
  bool stands = true;
  nn::Parameter follower{Tensor::scalar(0.0F)};

  /// Such a value, equal to `x`.
  Tensor before(const Tensor& x) {
    const Tensor y = x * 1.0;
    follower.follow(y, [this](const Tensor& now, const Tensor&) {
      if (stands) throw std::runtime_error("the obstacle stands");
      return now * 1.0;
    });
    return y;
  }
};

const auto obstacle_stands = Catch::Contains("the obstacle stands");

/// Keys or values of four positions, which only their row tells apart.
Tensor room(float first) { return Tensor::from({first, first + 1, first + 2}, {3, 1, 1, 1}) + zeros({3, 1, 4, 1}); }
Floats firsts(const Tensor& all) { return values_of(reshape(slice(all, 2, 0, 1), {all.size(0)})); }

}  // namespace

TEST_CASE("caches of keys and values take another order all together or not at all") {
  const Tensor rows = Tensor::from(std::vector<std::int64_t>{1, 2, 0});
  Obstacle obstacle;
  std::vector<nn::KVCache> caches{{nn::Parameter(room(0)), nn::Parameter(room(10))},
                                  {nn::Parameter(room(20)), nn::Parameter(obstacle.before(room(30)))}};
  SECTION("one cache") {
    CHECK_THROWS_WITH(caches[1].reorder(rows), obstacle_stands);
    CHECK(firsts(caches[1].k) == Floats{20, 21, 22});
    obstacle.stands = false;
    caches[1].reorder(rows);
  }
  SECTION("of several layers") {
    CHECK_THROWS_WITH(nn::reorder(caches, rows), obstacle_stands);
    obstacle.stands = false;
    CHECK(firsts(caches[0].k) == Floats{0, 1, 2});
    nn::reorder(caches, rows);
    CHECK(firsts(caches[0].k) == Floats{1, 2, 0});
    CHECK(firsts(caches[0].v) == Floats{11, 12, 10});
  }
  SECTION("of several decoder layers") {
    std::vector<nn::DecoderCache> layers{{caches[0], {}}, {caches[1], {}}};
    CHECK_THROWS_WITH(nn::reorder(layers, rows), obstacle_stands);
    obstacle.stands = false;
    CHECK(firsts(caches[0].k) == Floats{0, 1, 2});
    nn::reorder(layers, rows);
    CHECK(firsts(caches[0].k) == Floats{1, 2, 0});
  }
  SECTION("of several sizes") {
    obstacle.stands = false;
    std::vector<nn::KVCache> unlike{caches[0], {nn::Parameter(zeros({2, 1, 4, 1})), nn::Parameter(zeros({2, 1, 4, 1}))}};
    CHECK_THROWS_AS(nn::reorder(unlike, rows), ShapeError);
    CHECK(firsts(caches[0].k) == Floats{0, 1, 2});
    caches[1].reorder(rows);
  }
  CHECK(firsts(caches[1].k) == Floats{21, 22, 20});
  CHECK(firsts(caches[1].v) == Floats{31, 32, 30});
}
