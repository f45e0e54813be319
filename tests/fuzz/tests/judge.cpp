// The judge and the shrinker find faults that are planted, and leave right programs alone.
#include "tests/fuzz/judge.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "clnet/error.h"
#include "tests/fuzz/generator.h"
#include "tests/fuzz/interpret.h"
#include "tests/fuzz/rounding.h"
#include "tests/fuzz/run.h"

namespace clnet::fuzz {
namespace {

/// A program without a device: matmul and softmax, a slice of it in f16, and a sum.
Program small_program() {
  Program program;
  const auto add = [&](std::string op, std::vector<Ref> inputs, Spec spec, std::function<Tensors(const Tensors&)> make) {
    Step step;
    step.op = op;
    step.code = op;
    step.inputs = std::move(inputs);
    step.make = std::move(make);
    step.leaf.spec = spec;
    step.outputs = {spec};
    program.steps.push_back(std::move(step));
    return Ref{program.steps.size() - 1, 0};
  };
  const auto x = add("leaf", {}, {{5, 7}, Dtype::f32}, {}), w = add("leaf", {}, {{7, 3}, Dtype::f32}, {});
  const auto y =
      add("softmax", {x, w}, {{5, 3}, Dtype::f32}, [](const Tensors& in) { return Tensors{softmax(matmul(in[0], in[1]), 1)}; });
  const auto half =
      add("cast", {y}, {{2, 3}, Dtype::f16}, [](const Tensors& in) { return Tensors{cast(slice(in[0], 0, 1, 3), Dtype::f16)}; });
  const auto total = add("sum", {half}, {{}, Dtype::f16}, [](const Tensors& in) { return Tensors{sum(in[0] * 3.0)}; });
  program.evaluations = {{program.steps.size(), {y, half, total}}};
  return program;
}

/// What a right device would give, by the interpreter.
Storage right_results(const Built& built) {
  Interpreter interpreter({true, 77, 0.5});
  for (const auto& [leaf, values] : built.leaves) interpreter.set(leaf, values);
  Storage results;
  for (const auto& tensor : built.wanted) results.push_back(to_storage(interpreter(tensor), tensor.dtype()));
  return results;
}

/// Builds without evaluating.
Built graph_of(Program program) {
  const auto wanted = program.evaluations[0].values;
  program.evaluations.clear();
  auto built = build(program, 0);
  for (const auto& ref : wanted) built.wanted.push_back(built[ref]);
  return built;
}

TEST_CASE("the judge accepts rounding errors and nothing else") {
  const auto built = graph_of(small_program());
  const auto right = right_results(built);
  const auto verdict = judge(built, right);
  CHECK_FALSE(verdict.fault);
  CHECK(verdict.judged == verdict.elements);
  for (std::size_t k = 0; k < right.size(); ++k) {
    auto wrong = right;
    const auto& spec = built.wanted[k].spec();
    auto values = from_storage(wrong[k], spec);
    values[values.numel() - 1] *= spec.dtype == Dtype::f32 ? 1.0001 : 1.03;
    wrong[k] = to_storage(values, spec.dtype);
    const auto found = judge(built, wrong);
    CHECK(found.fault);
    CHECK(found.wanted == k);
  }
}

TEST_CASE("storage and values convert both ways, as the library does") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (auto dtype : {Dtype::f16, Dtype::bf16}) {
      std::vector<std::byte> bytes(2);
      const auto stored = static_cast<std::uint16_t>(bits);
      std::memcpy(bytes.data(), &stored, 2);
      const double value = from_storage(bytes, {{1}, dtype})[0];
      if (std::isnan(value)) continue;
      const float library = dtype == Dtype::f16 ? half_to_float(stored) : bfloat16_to_float(stored);
      REQUIRE(value == static_cast<double>(library));
      REQUIRE(to_storage(testing::Array({1}, {value}), dtype) == bytes);
    }
  }
  CHECK(rounded(65520, Dtype::f16) == INFINITY);
  CHECK(rounded(2049, Dtype::f16) == 2048);
  CHECK(rounded(-1, Dtype::u8) == 255);
  CHECK(rounded(-2.75, Dtype::i32) == -2);
}

TEST_CASE("wrong gradients are found by differences along a direction") {
  Program program;
  Step x;
  x.op = "leaf";
  x.leaf.spec = {{6}, Dtype::f32};
  x.outputs = {x.leaf.spec};
  Step loss;
  loss.op = "sum";
  loss.inputs = {{0, 0}};
  loss.make = [](const Tensors& in) { return Tensors{sum(sin(in[0]) * in[0])}; };
  loss.outputs = {{{}, Dtype::f32}};
  Step gradient;
  gradient.op = "gradients";
  gradient.inputs = {{1, 0}, {0, 0}};
  gradient.make = [](const Tensors& in) { return gradients(in[0], {in[1]}); };
  gradient.outputs = {{{6}, Dtype::f32}};
  program.steps = {x, loss, gradient};
  CHECK_FALSE(check_gradients(program, build(program, 0)));
  program.steps[2].make = [](const Tensors& in) { return Tensors{sin(in[1])}; };
  CHECK(check_gradients(program, build(program, 0)));
}

TEST_CASE("a failing program shrinks to the steps that fail") {
  const auto has = [](const Program& program, const std::string& op) {
    return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) { return step.op == op; });
  };
  bool found = false;
  for (std::uint64_t seed = 0; seed < 1600 && !found; seed += 16) {
    const auto program = Generator(seed, {})();
    if (!has(program, "softmax") || program.steps.size() < 12) continue;
    found = true;
    const auto least = shrink(
        program, [&](const Program& candidate) { return has(candidate, "softmax"); }, 20);
    CHECK(least.steps.size() == 2);
    CHECK(to_code(least).find("softmax(v0, ") != std::string::npos);
  }
  CHECK(found);
}

TEST_CASE("a seed means the same program everywhere, and neighbours share their structure") {
  CHECK(to_code(Generator(32, {})()) == to_code(Generator(32, {})()));
  const auto ops = [](std::uint64_t seed) {
    std::vector<std::string> names;
    for (const auto& step : Generator(seed, {})().steps) names.push_back(step.op);
    return names;
  };
  int alike = 0;
  for (std::uint64_t seed = 0; seed < 160; seed += 16) alike += ops(seed).front() == ops(seed + 1).front();
  CHECK(alike >= 8);
}

}  // namespace
}  // namespace clnet::fuzz
