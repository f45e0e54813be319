// What is measured, and who waits for it; what is measured here takes no time.
#include "lib/exec/tune/tuning.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/lower/readers.h"
#include "lib/exec/plan/cache.h"
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

Subgraph graph_of(const Tensor& tensor) { return Subgraph(collect(std::span(&tensor, 1))); }

void tune(Tuning& tuning, const Subgraph& graph, ocl::Context& context, const Tuning::Evaluate& evaluate) {
  tuning.tune(graph, context, PlanCache::of(context).prepacks(), Options::now(), evaluate);
}

}  // namespace

TEST_CASE("only operations that say so are measured, each problem once") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  auto& context = *context_of(Device::current());
  int evaluations = 0;
  const auto evaluate = [&](std::span<const Tensor> trials) {
    ++evaluations;
    eval(trials);
  };
  const Tensor x = ones({2, 3, 8, 8}).detach(), w = ones({4, 3, 3, 3}).detach();
  tune(tuning, graph_of(apply(std::make_shared<Impostor>(), {x, w})), context, evaluate);
  CHECK(evaluations == 0);
  const Tensor y = conv2d(x, w);
  tune(tuning, graph_of(y), context, evaluate);
  CHECK(evaluations > 0);
  const auto before = evaluations;
  tune(tuning, graph_of(y), context, evaluate);
  CHECK(evaluations == before);
  CHECK(tuning.choice(*node_of(y), Packed::leaf));
}

TEST_CASE("what was measured where f32 may be rounded says nothing where it may not") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  auto& context = *context_of(Device::current());
  const auto evaluate = [](std::span<const Tensor> trials) { eval(trials); };
  const Tensor product = matmul(ones({40, 50}).detach(), ones({50, 60}).detach());
  {
    const test::Variable rounded("CLNET_TF32", "1");
    tune(tuning, graph_of(product), context, evaluate);
    CHECK(tuning.choice(*node_of(product), Packed::leaf));
  }
  CHECK_FALSE(tuning.choice(*node_of(product), Packed::leaf));
  tune(tuning, graph_of(product), context, evaluate);
  CHECK(tuning.choice(*node_of(product), Packed::leaf));
}

TEST_CASE("every configuration that is listed for the whole batch is measured") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 60);
  auto& context = *context_of(Device::current());
  const Tensor x = ones({16, 16, 20, 20}).detach(), w = ones({32, 16, 3, 3}).detach();
  const auto y = [&] { return gradients(sum(conv2d(x, w)), {w})[0]; };
  const std::string op = "conv2d_backward_weights";
  std::set<std::string> listed, measured;
  {
    const Tensor result = y();
    ListChoices choices;
    lower(graph_of(result), context.info(), {.list = &choices});
    for (auto& choice : choices.of(op)) listed.insert(std::move(choice));
  }
  tune(tuning, graph_of(y()), context, [&](std::span<const Tensor> trials) {
    eval(trials);
    if (const auto forced = forced_solver(op)) measured.insert(forced->choice.text());
  });
  CHECK(listed.size() >= 3);
  CHECK(measured == listed);
}

namespace {

/// The problems that are known after tuning, by the names of their operations.
std::multiset<std::string> tuned(Tuning& tuning, const Tensors& wanted) {
  const Subgraph graph(collect(wanted));
  tune(tuning, graph, *context_of(Device::current()), [](std::span<const Tensor> trials) { eval(trials); });
  Readers readers(graph);
  std::multiset<std::string> known;
  for (const auto& node : graph.nodes())
    if (node->op && tuning.choice(*node, readers.packed(*node))) known.emplace(node->op->name());
  return known;
}

}  // namespace

TEST_CASE("trials pack a weight as often as the plan does") {
  auto& context = *context_of(Device::current());
  nn::Conv2d layer{16, 16, 3, {.padding = 1}};
  const Tensor x = ones({1, 16, 8, 8}).detach(), weight = layer.parameters().at(0).second.value();
  const test::Folder folder;
  const std::string solver = Device::current().info().prefers_vector_kernels ? "cpu{" : "packed_gpu{";
  /// The launches of the last evaluation with each of its configurations.
  const auto launches = [&](const Tensor& y) {
    Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 600);
    std::map<std::string, std::uint64_t> result;
    const auto graph = graph_of(y);
    tune(tuning, graph, context, [&](std::span<const Tensor> trials) {
      const auto before = context.launches();
      eval(trials);
      if (const auto forced = forced_solver("conv2d"); forced && forced->choice.text().starts_with(solver))
        result[forced->choice.text()] = context.launches() - before;
    });
    Readers readers(graph);
    for (const auto& node : graph.nodes())
      if (node->op->name() == "conv2d") CHECK(tuning.choice(*node, readers.packed(*node)));
    return result;
  };
  const Tensor y = layer(x);
  const auto inference = launches(layer(x)), training = launches(weight - gradients(sum(y * y), {weight})[0]);
  REQUIRE(inference.size() > 2);
  REQUIRE(training.size() == inference.size());
  for (const auto& [choice, count] : inference) CHECK(training.at(choice) == count + 1);
}

TEST_CASE("what is likely is measured first, and another is taken only where it is faster") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 0.02);
  auto& context = *context_of(Device::current());
  const Tensor x = ones({40, 300}).detach(), y = matmul(x, ones({300, 50}).detach());
  std::string likely;
  {
    ListChoices choices;
    lower(graph_of(y), context.info(), {.list = &choices});
    likely = choices.chosen("matmul");
  }
  // Time for one, and the reference solver.
  std::vector<std::string> measured;
  const auto by_name = [&](std::span<const Tensor> trials) {
    eval(trials);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    measured.push_back(forced_solver("matmul")->choice.text());
  };
  tune(tuning, graph_of(y), context, by_name);
  REQUIRE_FALSE(measured.empty());
  CHECK(measured.front() == likely);
  CHECK(std::set<std::string>(measured.begin(), measured.end()) == std::set<std::string>{likely, "direct"});
}

TEST_CASE("reductions, losses, pools, copies and adding at indices are measured last") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 600);
  const Tensor x = ones({40, 30}).detach(), w = ones({50, 30}).detach(), targets = zeros({40}, Dtype::i32).detach();
  const Tensor words = embedding(targets, w);
  const Tensor loss =
      cross_entropy(x * 2.0, targets) + sum(max(x * 3.0, {0})) + sum(transpose(x, 0, 1) * 2.0) + sum(words * words);
  const Tensor image = ones({3, 2, 20, 40}).detach();
  const Tensor pooled = sum(avg_pool2d(image * 2.0, 3, {.stride = 2})) + sum(max_pool2d(image * 3.0, 2));
  auto wanted = gradients(loss, {x, w});
  for (auto& gradient : gradients(pooled, {image})) wanted.push_back(std::move(gradient));
  wanted.push_back(pooled);
  wanted.push_back(argmax(x * 5.0, 0));
  const auto known = tuned(tuning, wanted);
  for (const char* op : {"cross_entropy", "cross_entropy_backward", "max", "argmax", "permute", "index_add", "avg_pool2d",
                         "avg_pool2d_backward", "max_pool2d"}) {
    INFO(op);
    CHECK(known.contains(op));
  }
  // Whole numbers have no solver to be compared.
  CHECK(tuned(tuning, {sum(targets)}).empty());
  const Tensor whole = zeros({50, 3}, Dtype::i32).detach();
  CHECK(tuned(tuning, {index_add(whole, 0, targets, zeros({40, 3}, Dtype::i32).detach())}).empty());
}

TEST_CASE("a view, which nothing computes, is no problem to be measured") {
  const test::Folder folder;
  const auto path = folder / "tuning.json";
  Tuning tuning(TuningFile(path.string(), "device"), 600);
  const Tensor y = transpose(ones({3, 1, 40}).detach(), 0, 1) * 2.0;
  const auto graph = graph_of(y);
  REQUIRE(
      std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) { return node->op->name() == "permute"; }));
  tune(tuning, graph, *context_of(Device::current()), [](std::span<const Tensor>) { FAIL_CHECK("nothing is to be measured"); });
  // What was looked at is written down.
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("operations of several outputs are measured by the list that they share, products and attention first") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 600);
  auto& context = *context_of(Device::current());
  const auto leaf = [](const Shape& shape) { return ones(shape).detach(); };
  const Tensor x = leaf({6, 30, 20}), w = leaf({20}), q = leaf({2, 150, 20}), product = leaf({20, 20});
  const RecurrentWeights recurrent{leaf({80, 20}), leaf({80, 20}), {}, {}, {}};
  const Tensor attention = scaled_dot_product_attention(q, q, q, {.causal = true});
  const Tensor normalised = layer_norm(matmul(x, product), 1, w, w);
  const Tensor states = lstm_layer(x, zeros({30, 20}).detach(), zeros({30, 20}).detach(), recurrent).output;
  const Tensor loss = sum(attention * 2.0) + sum(normalised * x) + sum(states * x) + sum(softmax(x * 3.0, 1) * x) +
                      sum(batch_norm_training(x, leaf({30}), leaf({30})).y * x);
  const auto all = gradients(loss, {x, w, q, product, recurrent.weight_hh});
  const Subgraph graph(collect(all));
  std::vector<std::string> measured;
  tune(tuning, graph, context, [&](std::span<const Tensor> trials) {
    measured.emplace_back(node_of(trials[0])->op->name());
    eval(trials);
  });
  const std::set<std::string> late{
      "sum", "softmax", "layer_norm", "layer_norm_backward", "layer_norm_parameters", "batch_norm", "batch_norm_backward"},
      early{"matmul", "attention", "attention_backward", "recurrent", "recurrent_backward"};
  std::set<std::string> known;
  Readers readers(graph);
  for (const auto& node : graph.nodes())
    if (node->op && tuning.choice(*node, readers.packed(*node))) known.emplace(node->op->name());
  std::set<std::string> wanted = late;
  wanted.insert(early.begin(), early.end());
  CHECK(known == wanted);
  CHECK(std::is_partitioned(measured.begin(), measured.end(), [&](const auto& name) { return early.contains(name); }));
}

TEST_CASE("who forces a solver does not wait for who measures") {
  using namespace std::chrono_literals;
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  auto& context = *context_of(Device::current());
  const Tensor a = ones({8, 8}).detach();
  std::future<void> other;
  // The thread that measures would wait here for the plan that the other one makes.
  const auto evaluate = [&](std::span<const Tensor> trials) {
    if (!other.valid()) {
      other = std::async(std::launch::async, [&] {
        const ForceSolver force("matmul", "direct");
        tune(tuning, graph_of(matmul(a, a)), context, [](std::span<const Tensor>) { FAIL_CHECK("nothing is to be measured"); });
      });
      CHECK(other.wait_for(20s) == std::future_status::ready);
    }
    eval(trials);
  };
  tune(tuning, graph_of(matmul(a, a)), context, evaluate);
  REQUIRE(other.valid());
  other.get();
}

TEST_CASE("what was planned before is not measured") {
  const test::Folder folder;
  Tuning tuning(TuningFile((folder / "tuning.json").string(), "device"), 5);
  const Tensor product = matmul(ones({41, 50}).detach(), ones({50, 60}).detach());
  tuning.note(*node_of(product), Choice::parse("direct"), Packed::leaf);
  tune(tuning, graph_of(product), *context_of(Device::current()),
       [](std::span<const Tensor>) { FAIL_CHECK("nothing is to be measured"); });
  CHECK_FALSE(tuning.choice(*node_of(product), Packed::leaf));
}

TEST_CASE("plans follow stored choices, those of compiled functions too") {
  auto& plans = PlanCache::of(*context_of(Device::current()));
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
