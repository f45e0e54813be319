// How many launches a recurrent layer is on the devices that the null driver claims to be.
#include <catch2/catch.hpp>
#include <vector>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"

using namespace clnet;

namespace {

/// Of a layer over so many steps, and of its gradients.
struct Launches {
  std::uint64_t forward, backward;
};

Launches launches(std::int64_t gates, std::int64_t hidden, std::int64_t steps) {
  const Tensor x = ones({steps, 32, hidden}).detach();
  const RecurrentWeights weights{ones({gates * hidden, hidden}).detach(), ones({gates * hidden, hidden}).detach(), {}, {}, {}};
  eval({x, weights.weight_ih, weights.weight_hh});
  const auto counted = [](const std::vector<Tensor>& wanted) {
    const auto before = exec::statistics().kernels;
    eval(wanted);
    return exec::statistics().kernels - before;
  };
  const Tensor y = gates == 4   ? lstm_layer(x, {}, {}, weights).output
                   : gates == 3 ? gru_layer(x, {}, weights).output
                                : rnn_layer(x, {}, weights, Nonlinearity::tanh).output;
  // The graph that reads what the layer makes besides is there, so that this is kept.
  const auto all = gradients(sum(y), {x, weights.weight_ih, weights.weight_hh});
  const auto forward = counted({y});
  return {forward, counted(all)};
}

}  // namespace

TEST_CASE("a recurrent layer of few states is as many launches for any number of steps") {
  for (const std::int64_t gates : {1, 3, 4}) {
    INFO(gates << " gates");
    const auto few = launches(gates, 128, 10), many = launches(gates, 128, 50);
    CHECK(few.forward < 10);
    CHECK(few.backward < 20);
    // Products over all steps may be sums of parts.
    CHECK(many.forward < few.forward + 5);
    CHECK(many.backward < few.backward + 10);
  }
}

TEST_CASE("a recurrent layer of many states is a launch per step on GPUs") {
  const auto few = launches(4, 512, 10), many = launches(4, 512, 50);
  const std::uint64_t more = Device::current().info().type == DeviceType::gpu ? 40 : 0;
  // Products over all steps may be sums of parts.
  CHECK(many.forward < few.forward + more + 5);
  CHECK(many.forward + 5 > few.forward + more);
  CHECK(many.backward < few.backward + more + 10);
  CHECK(many.backward + 10 > few.backward + more);
}
