// Lanes: a host thread for each device. Also under ThreadSanitizer.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "lib/base/process_mutex.h"
#include "lib/cl/compile_watch.h"
#include "lib/exec/options/options.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/statistics.h"
#include "lib/graph/op.h"
#include "lib/graph/scope.h"
#include "lib/parallel/lane.h"
#include "tests/support/copy_kernel.h"
#include "tests/support/temporary.h"

using namespace clnet;
using parallel::Lane, parallel::Lanes;

namespace {

/// A machine with two devices, and a lane for each.
struct TwoLanes {
  test::Variable variable{"NULL_OPENCL_DEVICES", "2"};
  std::vector<Device> devices{Device::find("0:0"), Device::find("0:1")};
  Lanes lanes{devices};
};

constexpr std::chrono::seconds long_enough{60};

/// Whether the job ended, and with success.
bool ends(std::future<void> job) {
  if (job.wait_for(long_enough) != std::future_status::ready) return false;
  job.get();
  return true;
}

std::shared_ptr<nn::Sequential> small_network(unsigned seed) {
  manual_seed(seed);
  return std::make_shared<nn::Sequential>(nn::Conv2d{1, 4, 3, {.padding = 1}}, nn::BatchNorm2d{4}, relu, nn::Flatten{},
                                          nn::Linear{4 * 36, 3});
}

/// Steps of a network, some of whose losses are read.
void train_some(nn::Sequential& net, int steps) {
  optim::Adam adam(net, {.learning_rate = 1e-2});
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> values(static_cast<std::size_t>(5 * 36), 0.1F * static_cast<float>(step));
    const Tensor loss = adam.step(cross_entropy(net(Tensor::from(values, {5, 1, 6, 6})), Tensor::from({0, 1, 2, 1, step % 3})));
    if (step % 3 == 0) (void)loss.item<float>();
  }
}

/// y = x, by an operation whose plan is made when somebody allows it.
class HeldBack : public Op {
 public:
  HeldBack(std::promise<void>& reached, std::shared_future<void> opened) : reached_(reached), opened_(std::move(opened)) {}
  std::string_view name() const override { return "held_back"; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  void lower(exec::Recorder& recorder) const override {
    reached_.set_value();
    opened_.wait_for(long_enough);
    test::record_copy(recorder, "held_back");
  }

 private:
  std::promise<void>& reached_;
  std::shared_future<void> opened_;
};

}  // namespace

TEST_CASE("lane: jobs run in order on its device, results and exceptions come back") {
  TwoLanes two;
  auto& lane = two.lanes[1];
  CHECK(lane.device() == two.devices[1]);
  const auto thread = lane.run([] { return std::this_thread::get_id(); }).get();
  CHECK(thread != std::this_thread::get_id());
  CHECK(lane.run([] { return Device::current(); }).get() == two.devices[1]);
  const Tensor made = lane.run([] {
                            Tensor there = ones({3}) * 2.0;
                            there.eval();
                            return there;
                          })
                          .get();
  CHECK(made.device() == two.devices[1]);
  std::vector<int> order;
  std::vector<std::future<void>> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(lane.run([&order, i] { order.push_back(i); }));
  for (auto& job : jobs) job.get();
  for (int i = 0; i < 20; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  CHECK_THROWS_WITH(lane.run([] { matmul(ones({2, 3}), ones({2, 3})); }).get(), Catch::Contains("matmul"));
  CHECK(lane.run([&] { return lane.run([] { return 7; }).get(); }).get() == 7);  // of its own thread
  CHECK(lane.run([value = std::make_unique<int>(5)] { return *value; }).get() == 5);
}

TEST_CASE("lane: a lane ends after its jobs") {
  TwoLanes two;
  std::atomic<int> done{0};
  {
    Lane lane(two.devices[0]);
    for (int i = 0; i < 5; ++i)
      (void)lane.run([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++done;
      });
  }
  CHECK(done == 5);
  CHECK_THROWS_WITH(Lanes(std::vector<Device>(2, two.devices[0])), Catch::Contains("is given twice"));
}

TEST_CASE("lane: a job has its caller's surroundings") {
  TwoLanes two;
  auto& lane = two.lanes[0];
  const auto look = [&] { return lane.run([] { return std::pair(Autocast::dtype(), to_string(scope_now())); }).get(); };
  CHECK(look() == std::pair(Dtype::f32, std::string()));
  {
    const Autocast half(Dtype::bf16);
    const NamedScope scope("replica");
    CHECK(look() == std::pair(Dtype::bf16, std::string("replica")));
  }
  CHECK(look() == std::pair(Dtype::f32, std::string()));
  const auto fuses = [&] { return lane.run([] { return exec::Options::now().fuses; }).get(); };
  CHECK(fuses());
  {
    const exec::NoFusion unfused;
    CHECK_FALSE(fuses());
    const DetectAnomaly looking;
    CHECK(lane.run([] { return exec::Options::now().anomaly.has_value(); }).get());
  }
  CHECK_THROWS_WITH(compile([&](const Tensor& x) {
                      (void)lane.run([] {});
                      return x;
                    })(ones({2})),
                    Catch::Contains("gives a lane a job"));
}

TEST_CASE("lane: who watches compiling hears of lanes as long as the watch lives") {
  TwoLanes two;
  std::atomic<int> calls{0};
  std::promise<void> begun, ended;
  auto later = std::future<void>();
  const auto compile_new = [](std::int64_t extent) {
    exp(Tensor::from(std::vector<float>(static_cast<std::size_t>(extent), 1))).eval();
  };
  {
    const ocl::CompileWatch watch([&](std::size_t, std::size_t) { return ++calls, true; });
    two.lanes.run([](std::size_t) { ocl::Compiling(3).tell(2); });
    CHECK(calls == 4);
    later = two.lanes[0].run([&, over = ended.get_future()] {
      over.wait();
      ocl::Compiling(3).tell(3);
      compile_new(17);
    });
  }
  ended.set_value();
  later.get();
  CHECK(calls == 4);
  const ocl::CompileWatch refusing([](std::size_t, std::size_t) { return false; });
  CHECK_THROWS_AS(two.lanes[1].run([] { ocl::Compiling(2).tell(1); }).get(), ocl::CompilingCancelled);
}

TEST_CASE("lanes train, and never wait for one another") {
  TwoLanes two;
  std::vector<std::shared_ptr<nn::Sequential>> nets{small_network(1), small_network(2)};
  two.lanes.run([&](std::size_t i) { train_some(*nets[i], 2); });
  const auto before = exec::statistics().waited;
  two.lanes.run([&](std::size_t i) {
    train_some(*nets[i], 40);
    // New plans, functions, updates and values that nobody asked for.
    for (int round = 0; round < 10; ++round) {
      const auto f = compile([](const Tensor& x) { return sum(x * 2.0) + 1.0; });
      f(ones({round + 1})).eval();
      nn::Parameter p(zeros({3}).detach());
      const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F}), y = x * 2.0, z = sum(exp(y));
      z.eval();
      p.follow(y, [](const Tensor& now, const Tensor& value) { return now + value; });
      eval({y, softmax(x, 0)});
    }
    auto device = Device::current();
    device.trim();
  });
  CHECK(exec::statistics().waited == before);
}

TEST_CASE("what waits for all devices' state, or for another device, is counted") {
  TwoLanes two;
  const auto waits_for = [&](const std::function<void(std::promise<void>&, std::shared_future<void>)>& hold,
                             const std::function<void()>& want) {
    const auto before = exec::statistics().waited;
    std::promise<void> held, release;
    const auto released = release.get_future().share();
    auto holder = two.lanes[0].run([&] { hold(held, released); });
    held.get_future().wait();
    auto wanting = two.lanes[1].run(want);
    while (exec::statistics().waited == before && wanting.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    }
    release.set_value();
    holder.get();
    wanting.get();
    return exec::statistics().waited - before;
  };
  ProcessMutex shared;
  CHECK(waits_for(
            [&](auto& held, const auto& released) {
              const std::lock_guard lock(shared);
              held.set_value();
              released.wait();
            },
            [&] { const std::lock_guard lock(shared); }) == 1);
  const auto first = context_of(two.devices[0]);
  const auto hold_first = [&](auto& held, const auto& released) {
    const auto lock = first->lock();
    held.set_value();
    released.wait();
  };
  CHECK(waits_for(hold_first, [&] { const auto lock = first->lock(); }) == 1);
  CHECK(waits_for(hold_first, [&] { train_some(*small_network(3), 2); }) == 0);
}

TEST_CASE("a lane works while another makes a plan or holds its device") {
  TwoLanes two;
  const auto net = small_network(4);
  std::promise<void> reached, open;
  const auto opened = open.get_future().share();
  auto planning = two.lanes[0].run([&] { apply(std::make_shared<HeldBack>(reached, opened), {ones({3})}).eval(); });
  reached.get_future().wait();
  CHECK(ends(two.lanes[1].run([&] { train_some(*net, 3); })));
  open.set_value();
  planning.get();
  const auto lock = context_of(two.devices[0])->lock();
  CHECK(ends(two.lanes[1].run([&] { train_some(*net, 3); })));
}

TEST_CASE("what a lane does drops no values of another's device that came along") {
  TwoLanes two;
  const auto kept = [&](std::size_t of) {
    return exec::PlanCache::of(*context_of(two.devices[of])).speculative_outputs().count();
  };
  std::vector<Tensor> held;
  const auto make = [&] {
    const Tensor x = ones({4, 5}) * 3.0, y = softmax(x, 1), z = sum(matmul(y, ones({5, 6})));
    z.eval();
    held = {x, y, z};
  };
  two.lanes[0].run(make).get();
  const auto before = kept(0);
  REQUIRE(before > 0);
  two.lanes[1]
      .run([] {
        train_some(*small_network(5), 2);
        compile([](const Tensor& x) { return x + 1.0; })(ones({2})).eval();
        const DetectAnomaly looking;
        (ones({7}) * 2.0).eval();
      })
      .get();
  CHECK(kept(0) == before);
  // In its own lane they go, as ever.
  two.lanes[0].run([] { compile([](const Tensor& x) { return x + 1.0; })(ones({2})).eval(); }).get();
  CHECK(kept(0) == 0);
}
