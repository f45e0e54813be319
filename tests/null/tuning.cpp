// What is measured, and who waits for it; what is measured here takes no time.
#include "lib/exec/choose/tuning.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <set>
#include <string>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/plan/cache.h"
#include "lib/exec/record/record.h"
#include "lib/exec/statistics.h"
#include "lib/graph/op.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::exec;

namespace {

/// A user's operation by the name of one of the library's.
class Impostor : public Op {
 public:
  std::string_view name() const override { return "conv2d"; }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
};

Work work_of(const Tensor& tensor) { return collect(std::span(&tensor, 1)); }

}  // namespace

TEST_CASE("only operations that say so are measured, each problem once") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  auto& context = *Device::current().context();
  int evaluations = 0;
  const auto evaluate = [&](std::span<const Tensor> trials) {
    ++evaluations;
    eval(trials);
  };
  const Tensor x = ones({2, 3, 8, 8}).detach(), w = ones({4, 3, 3, 3}).detach();
  tuning.tune(work_of(apply(std::make_shared<Impostor>(), {x, w})), context, evaluate);
  CHECK(evaluations == 0);
  const Tensor y = conv2d(x, w);
  tuning.tune(work_of(y), context, evaluate);
  CHECK(evaluations > 0);
  const auto before = evaluations;
  tuning.tune(work_of(y), context, evaluate);
  CHECK(evaluations == before);
  CHECK(tuning.choice(*y.node()));
}

TEST_CASE("what was measured where f32 may be rounded says nothing where it may not") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  auto& context = *Device::current().context();
  const auto evaluate = [](std::span<const Tensor> trials) { eval(trials); };
  const Tensor product = matmul(ones({40, 50}).detach(), ones({50, 60}).detach());
  {
    const test::Variable rounded("CLNET_TF32", "1");
    tuning.tune(work_of(product), context, evaluate);
    CHECK(tuning.choice(*product.node()));
  }
  CHECK_FALSE(tuning.choice(*product.node()));
  tuning.tune(work_of(product), context, evaluate);
  CHECK(tuning.choice(*product.node()));
}

TEST_CASE("every configuration that is listed for the whole batch is measured") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 60);
  auto& context = *Device::current().context();
  const Tensor x = ones({16, 16, 20, 20}).detach(), w = ones({32, 16, 3, 3}).detach();
  const auto y = [&] { return gradients(sum(conv2d(x, w)), {w})[0]; };
  const std::string op = "conv2d_backward_weights";
  std::set<std::string> listed, measured;
  {
    const Tensor result = y();
    const ListChoices choices;
    Recording recording;
    record(work_of(result), {&result, 1}, context.info(), recording);
    for (auto& choice : choices.of(op)) listed.insert(std::move(choice));
  }
  tuning.tune(work_of(y()), context, [&](std::span<const Tensor> trials) {
    eval(trials);
    if (const auto forced = forced_solver(op)) measured.insert(forced->choice.text());
  });
  CHECK(listed.size() >= 3);
  CHECK(measured == listed);
}

TEST_CASE("operations of several outputs are measured by the list that they share, products and attention first") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 600);
  auto& context = *Device::current().context();
  const auto leaf = [](const Shape& shape) { return ones(shape).detach(); };
  const Tensor x = leaf({6, 30, 20}), w = leaf({20}), q = leaf({2, 150, 20}), product = leaf({20, 20});
  const RecurrentWeights recurrent{leaf({80, 20}), leaf({80, 20}), {}, {}, {}};
  const Tensor attention = scaled_dot_product_attention(q, q, q, {.causal = true});
  const Tensor normalised = layer_norm(matmul(x, product), 1, w, w);
  const Tensor states = lstm_layer(x, zeros({30, 20}).detach(), zeros({30, 20}).detach(), recurrent).output;
  const Tensor loss = sum(attention * 2.0) + sum(normalised * x) + sum(states * x) + sum(softmax(x * 3.0, 1) * x) +
                      sum(batch_norm_training(x, leaf({30}), leaf({30})).y * x);
  const auto all = gradients(loss, {x, w, q, product, recurrent.weight_hh});
  const auto work = collect(all);
  std::vector<std::string> measured;
  tuning.tune(work, context, [&](std::span<const Tensor> trials) {
    measured.emplace_back(trials[0].node()->op->name());
    eval(trials);
  });
  const std::set<std::string> late{"softmax",    "layer_norm",         "layer_norm_backward", "layer_norm_parameters",
                                   "batch_norm", "batch_norm_backward"},
      early{"matmul", "attention", "attention_backward", "recurrent", "recurrent_backward"};
  std::set<std::string> known;
  for (const auto& node : work.nodes)
    if (node->op && tuning.choice(*node)) known.emplace(node->op->name());
  std::set<std::string> wanted = late;
  wanted.insert(early.begin(), early.end());
  CHECK(known == wanted);
  CHECK(std::is_partitioned(measured.begin(), measured.end(), [&](const auto& name) { return early.contains(name); }));
}

TEST_CASE("who forces a solver does not wait for who measures") {
  using namespace std::chrono_literals;
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  auto& context = *Device::current().context();
  const Tensor a = ones({8, 8}).detach();
  std::future<void> other;
  // The thread that measures would wait here for the plan that the other one makes.
  const auto evaluate = [&](std::span<const Tensor> trials) {
    if (!other.valid()) {
      other = std::async(std::launch::async, [&] {
        const ForceSolver force("matmul", "direct");
        tuning.tune(work_of(matmul(a, a)), context, [](std::span<const Tensor>) { FAIL_CHECK("nothing is to be measured"); });
      });
      CHECK(other.wait_for(20s) == std::future_status::ready);
    }
    eval(trials);
  };
  tuning.tune(work_of(matmul(a, a)), context, evaluate);
  REQUIRE(other.valid());
  other.get();
}

TEST_CASE("what was planned before is not measured") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  const Tensor product = matmul(ones({41, 50}).detach(), ones({50, 60}).detach());
  tuning.note(*product.node(), Choice::parse("direct"));
  tuning.tune(work_of(product), *Device::current().context(),
              [](std::span<const Tensor>) { FAIL_CHECK("nothing is to be measured"); });
  CHECK_FALSE(tuning.choice(*product.node()));
}

TEST_CASE("plans follow stored choices, those of compiled functions too") {
  auto& plans = PlanCache::of(*Device::current().context());
  const Tensor a = ones({43, 50}).detach(), b = ones({50, 60}).detach();
  const auto product = compile([](const Tensor& x, const Tensor& y) { return matmul(x, y); });
  const auto plans_made = [&] {
    const auto before = statistics().plans_made;
    product(a, b);
    return statistics().plans_made - before;
  };
  CHECK(plans_made() == 1);
  CHECK(plans_made() == 0);
  auto stored = StoredChoices::parse(plans.choices());
  for (auto& [problem, choice] : stored.solvers)
    if (problem.starts_with("matmul ")) choice = Choice::parse("direct");
  CHECK(plans.follow(stored));
  CHECK(plans_made() == 1);
  CHECK(plans_made() == 0);
  CHECK(plans.follow(stored));
  CHECK(plans_made() == 0);
  // What was computed, whatever is followed.
  CHECK(plans.follow({stored.identity, {}}));
  int direct = 0;
  for (const auto& [problem, choice] : StoredChoices::parse(plans.choices()).solvers)
    if (problem.starts_with("matmul ")) direct += choice.text() == "direct" ? 1 : 0;
  CHECK(direct == 1);
  CHECK_FALSE(plans.follow({"another device", {}}));
}
