// Faults of a saved program that are planted are found, and right ones are left alone.
#include "tests/fuzz/saved.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/support/temporary.h"

namespace clnet::fuzz {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

Ref add_step(Program& program, std::string op, std::vector<Ref> inputs, Spec spec, std::function<Tensors(const Tensors&)> make) {
  Step step;
  step.op = step.code = std::move(op);
  step.inputs = std::move(inputs);
  step.make = std::move(make);
  step.leaf.spec = spec;
  step.outputs = {spec};
  program.steps.push_back(std::move(step));
  return {program.steps.size() - 1, 0};
}

/// A linear layer and a step of truth values; `more` is applied to the layer's result.
Program layer(Tensor (*more)(const Tensor&)) {
  Program program;
  program.seed = 3;
  const Spec rows{{3, 4}, Dtype::f32};
  const auto x = add_step(program, "leaf", {}, {{3, 5}, Dtype::f32}, {}),
             w = add_step(program, "leaf", {}, {{5, 4}, Dtype::f32}, {});
  const auto y = add_step(program, "matmul", {x, w}, rows, [](const Tensors& in) { return Tensors{matmul(in[0], in[1])}; });
  const auto z = add_step(program, "more", {y}, rows, [more](const Tensors& in) { return Tensors{more(in[0])}; });
  program.evaluations = {{program.steps.size(), {z}}};
  return program;
}

/// Another program that computes what load() makes of the file, and changes it.
Runner other(
    std::function<Tensor(const Tensor&)> change, std::function<bool(bool plain)> changes = [](bool) { return true; }) {
  return [=](const fs::path& folder, bool plain) -> Answer {
    auto model = onnx::load(folder / "model.onnx");
    for (int set = 0; fs::exists(folder / fmt::format("test_data_set_{}", set)); ++set) {
      const auto data = folder / fmt::format("test_data_set_{}", set);
      Tensors inputs;
      for (std::size_t i = 0; i < model.inputs().size(); ++i)
        inputs.push_back(onnx::load_tensor(data / fmt::format("input_{}.pb", i)).tensor);
      const auto outputs = model.run(inputs);
      for (std::size_t i = 0; i < outputs.size(); ++i)
        onnx::save_tensor(data / fmt::format("other_{}.pb", i), changes(plain) ? change(outputs[i]) : outputs[i]);
    }
    return {};
  };
}

TEST_CASE("a saved program is judged by what the graph means") {
  const test::Folder folder;
  SavedOptions options{.device = true, .folder = folder / "case"};
  const auto program = layer([](const Tensor& x) { return tanh(x); });
  const auto alone = check_saved(program, options);
  CHECK_FALSE(alone.fault);
  CHECK(alone.follows_batch);
  CHECK(alone.judged == alone.elements);
  CHECK(alone.elements == 12 + 20);  // a batch of 5, too

  options.runner = other([](const Tensor& x) { return x * (1 + 1e-7); });
  CHECK_FALSE(check_saved(program, options).fault);
  options.runner = other([](const Tensor& x) { return x + 1e-4; });
  const auto wrong = check_saved(program, options);
  REQUIRE(wrong.fault);
  CHECK_THAT(*wrong.fault, Contains("other: value 0"));
  CHECK_FALSE(wrong.optimizer);
  options.runner = other([](const Tensor& x) { return concat({x, x}, 0); });
  CHECK_THAT(check_saved(program, options).fault.value_or(""), Contains("other: output 0 is f32[6, 4] instead of f32[3, 4]"));
  options.runner = other([](const Tensor& x) { return x + 1e-4; }, [](bool plain) { return !plain; });
  const auto optimized = check_saved(program, options);
  CHECK_FALSE(optimized.fault);
  CHECK(optimized.optimizer);
  options.runner = [](const fs::path&, bool) { return Answer{Answer::Kind::refused, "lacks Tanh"}; };
  CHECK(check_saved(program, options).refused == "lacks Tanh");
  options.runner = [](const fs::path&, bool) { return Answer{Answer::Kind::invalid, "a cycle"}; };
  CHECK(check_saved(program, options).fault == "invalid: a cycle");
  // One without optimizations is no comfort.
  options.runner = [](const fs::path&, bool plain) {
    return Answer{plain ? Answer::Kind::ran : Answer::Kind::ended, "another, by SIGABRT"};
  };
  CHECK(check_saved(program, options).fault == "ended: another, by SIGABRT");
}

TEST_CASE("steps that save() refuses become leaves") {
  const test::Folder folder;
  std::map<std::string, std::int64_t> refused;
  auto program = layer([](const Tensor& x) { return lgamma(abs(x) + 0.5); });
  CHECK(writable(program, folder.path(), refused).evaluations.empty());
  REQUIRE(refused.size() == 1);
  CHECK_THAT(refused.begin()->first, Contains("lgamma has no operator of ONNX"));
  const Ref more = program.evaluations[0].values[0];
  const auto last = add_step(program, "relu", {more}, program.spec(more), [](const Tensors& in) { return Tensors{relu(in[0])}; });
  program.evaluations = {{program.steps.size(), {last}}};
  const auto rest = writable(program, folder.path(), refused);
  REQUIRE(rest.steps.size() == 2);
  CHECK(rest.steps[1].op == "relu");
  SavedOptions options{.folder = folder / "case"};
  CHECK_FALSE(check_saved(rest, options).fault);
}

}  // namespace
}  // namespace clnet::fuzz
