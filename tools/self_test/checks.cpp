// Runs problems on the device and compares.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "lib/exec/choose/solver.h"
#include "tools/self_test/check.h"
#include "tools/self_test/problem.h"

namespace clnet::tools {

namespace {

using Bytes = std::vector<std::byte>;

/// The unit roundoff of what a result is stored in.
double roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 0x1p-11;
    case Dtype::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

/// Stores `value` as dtype and gives what is stored.
double store(double value, Dtype dtype, std::byte* to) {
  const auto put = [&](auto stored) { std::memcpy(to, &stored, sizeof stored); };
  const auto single = static_cast<float>(value);
  switch (dtype) {
    case Dtype::f16: put(float_to_half(single)); return half_to_float(float_to_half(single));
    case Dtype::bf16: put(float_to_bfloat16(single)); return bfloat16_to_float(float_to_bfloat16(single));
    case Dtype::i32: put(static_cast<std::int32_t>(value)); return value;
    case Dtype::i64: put(static_cast<std::int64_t>(value)); return value;
    case Dtype::u8:
    case Dtype::boolean: put(static_cast<std::uint8_t>(value)); return value;
    default: put(single); return single;
  }
}

/// Floating values are all different, so that no largest one is ambiguous.
Values draw(const Input& input, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values(static_cast<std::size_t>(input.shape.numel()));
  if (input.dtype == Dtype::f32) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = input.low + (static_cast<double>(i) + 0.37) * (input.high - input.low) / static_cast<double>(values.size());
    std::shuffle(values.begin(), values.end(), random);
  } else {
    std::uniform_int_distribution<std::int64_t> among(static_cast<std::int64_t>(input.low),
                                                      static_cast<std::int64_t>(input.high));
    for (auto& value : values) value = static_cast<double>(among(random));
  }
  return values;
}

Values read(const Tensor& tensor) {
  Values values;
  const auto take = [&](const auto& stored) { values.assign(stored.begin(), stored.end()); };
  if (is_floating(tensor.dtype()))
    take(tensor.to_vector<float>());
  else
    take(tensor.to_vector<std::int64_t>());
  return values;
}

Bytes bytes_of(const Tensor& tensor) {
  Bytes bytes(static_cast<std::size_t>(tensor.spec().bytes()));
  tensor.to_bytes(bytes.data(), bytes.size());
  return bytes;
}

/// A problem with its inputs in one dtype, and the results that it must have.
class PreparedProblem {
 public:
  PreparedProblem(Problem problem, Dtype dtype) : problem_(std::move(problem)), dtype_(dtype) {
    for (const auto& input : problem_.inputs) {
      auto values = draw(input, values_.size() + 1);
      const Spec spec{input.shape, input.dtype == Dtype::f32 ? dtype : input.dtype};
      Bytes bytes(static_cast<std::size_t>(spec.bytes()));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = store(values[i], spec.dtype, &bytes[i * size_of(spec.dtype)]);
      tensors_.push_back(Tensor::from_bytes(bytes.data(), bytes.size(), spec));
      values_.push_back(std::move(values));
    }
  }

  /// Compares with the reference once, and with itself `repeats` times.
  CheckResult compare(int repeats) const {
    const auto outputs = evaluate();
    if (want_.empty()) want_ = problem_.reference(values_);
    for (std::size_t i = 0; i < want_.size(); ++i)
      if (auto fault = difference(outputs.at(i), want_[i]); !fault.empty()) return {Verdict::wrong, fault};
    std::vector<Bytes> first;
    for (const auto& output : outputs) first.push_back(bytes_of(output));
    for (int n = 0; n < repeats; ++n) {
      const auto again = evaluate();
      for (std::size_t i = 0; i < again.size(); ++i)
        if (bytes_of(again[i]) != first[i])
          return {Verdict::wrong, fmt::format("run {} gives other bits than the first: a race", n + 2)};
    }
    return {};
  }

  /// The shortest of some runs, in milliseconds: others may be at work on the machine.
  double time() const {
    using Clock = std::chrono::steady_clock;
    std::vector<double> times;
    const auto device = Device::current();
    const auto run = [&] {
      device.finish();
      const auto start = Clock::now();
      evaluate();
      device.finish();
      return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    };
    run();  // it builds the programs
    const auto begin = Clock::now();
    while (times.empty() || (times.size() < 8 && Clock::now() - begin < std::chrono::milliseconds(300))) times.push_back(run());
    return *std::min_element(times.begin(), times.end());
  }

 private:
  std::vector<Tensor> evaluate() const {
    auto outputs = problem_.run(tensors_);
    eval(outputs);
    return outputs;
  }

  /// In what an output differs from what it must be; empty when it does not.
  std::string difference(const Tensor& output, const Values& want) const {
    const auto got = read(output);
    if (got.size() != want.size()) return fmt::format("{} values instead of {}", got.size(), want.size());
    double largest = 0;
    for (double value : want) largest = std::max(largest, std::abs(value));
    // A few roundings of the functions on the way and one per term of the longest sum; sums are always of floats. Results of
    // integers are exact.
    const double share = 4 * (16 + problem_.terms) * 0x1p-24 + (dtype_ == Dtype::f32 ? 0 : 8 * roundoff(dtype_));
    const double tolerance = is_floating(output.dtype()) ? share * largest : 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (!(std::abs(got[i] - want[i]) <= tolerance)) return fmt::format("element {} is {} instead of {}", i, got[i], want[i]);
    return {};
  }

  Problem problem_;
  Dtype dtype_;
  std::vector<Tensor> tensors_;
  std::vector<Values> values_;
  mutable std::vector<Values> want_;  ///< made once, when first asked for
};

/// Prepares the problem when it is first asked for, so that listing checks costs nothing, and keeps only the last one.
const PreparedProblem& shared_problem(const Problem& problem, Dtype dtype) {
  static std::string made_for;
  static std::unique_ptr<PreparedProblem> last;
  auto name = fmt::format("{} in {}", problem.name, to_string(dtype));
  if (!last || made_for != name) {
    last = std::make_unique<PreparedProblem>(problem, dtype);
    made_for = std::move(name);
  }
  return *last;
}

/// By the default choice and by each of `solvers`.
void add_comparisons(std::vector<Check>& checks, const Problem& problem, Dtype dtype, Depth depth,
                     std::vector<std::string> solvers) {
  solvers.insert(solvers.begin(), std::string());
  for (const auto& solver : solvers) {
    Check check{.name = fmt::format("{} in {}", problem.name, to_string(dtype)),
                .op = problem.op,
                .solver = solver,
                .limit = {},
                .timed = {},
                .run = {}};
    if (!solver.empty()) check.name += fmt::format(" by {}:{}", problem.op, solver);
    check.run = [problem, dtype, solver, depth] {
      const auto& prepared = shared_problem(problem, dtype);
      if (solver.empty()) return prepared.compare(depth.repeats());
      const exec::ForceSolver force(problem.op, solver);
      return prepared.compare(depth.repeats());
    };
    checks.push_back(std::move(check));
  }
}

void add_timings(std::vector<Check>& checks, const Problem& problem) {
  auto solvers = exec::solver_names(problem.op);
  solvers.pop_back();  // the reference solver is not meant to be fast
  solvers.insert(solvers.begin(), std::string());
  for (const auto& solver : solvers) {
    Check check{
        .name = "time of " + problem.name, .op = problem.op, .solver = solver, .limit = {}, .timed = problem.name, .run = {}};
    if (!solver.empty()) check.name += fmt::format(" by {}:{}", problem.op, solver);
    check.run = [problem, solver] {
      const auto& prepared = shared_problem(problem, Dtype::f32);
      CheckResult result;
      if (solver.empty()) {
        result.milliseconds = prepared.time();
      } else {
        const exec::ForceSolver force(problem.op, solver);
        result.milliseconds = prepared.time();
      }
      return result;
    };
    checks.push_back(std::move(check));
  }
}

class Speaker {
 public:
  explicit Speaker(int descriptor) : descriptor_(descriptor) {}
  void say(const nlohmann::json& object) const {
    const auto line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    std::size_t done = 0;
    while (done < line.size()) {
      const auto count = ::write(descriptor_, line.data() + done, line.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error(fmt::format("self-test: nobody listens: {}", std::strerror(errno)));
      done += static_cast<std::size_t>(count);
    }
  }

 private:
  int descriptor_;
};

/// `lost` becomes whether the device itself failed: after a fault, drivers of GPUs fail whatever follows.
CheckResult attempt(const Check& check, bool& lost) {
  const auto first_line = [longest = std::size_t{300}](std::string_view text) {
    return std::string(text.substr(0, std::min(text.find('\n'), longest)));
  };
  try {
    return check.run();
  } catch (const Unsupported& refusal) {
    return {check.solver.empty() ? Verdict::fails : Verdict::refuses, first_line(refusal.what())};
  } catch (const DeviceError& error) {
    try {
      Device::current().finish();
    } catch (const std::exception&) {
      lost = true;
    }
    return {Verdict::fails, first_line(error.what())};
  } catch (const std::exception& error) {
    return {Verdict::fails, first_line(error.what())};
  }
}

}  // namespace

std::vector<Check> make_checks(const DeviceInfo& device, Depth depth, const std::string& only) {
  std::vector<Check> checks;
  // Each dtype is programs of its own to build: a quick test has one problem in f16 of an operation on rows, and of one that has
  // solvers for nothing else.
  std::set<std::string> in_half{"matmul", "softmax"};
  for (const auto& problem : make_problems(depth.full)) {
    if (!only.empty() && problem.op != only) continue;
    auto solvers = problem.op.empty() ? std::vector<std::string>{} : exec::solver_names(problem.op);
    if (!depth.full) std::erase(solvers, problem.slow_to_build);
    add_comparisons(checks, problem, Dtype::f32, depth, solvers);
    if (!problem.narrow) continue;
    if (depth.full)
      for (auto dtype : {Dtype::f16, Dtype::bf16}) add_comparisons(checks, problem, dtype, depth, solvers);
    else if (in_half.erase(problem.op) > 0)
      add_comparisons(checks, problem, Dtype::f16, depth, solvers);
  }
  if (only.empty()) {
    auto probes = make_probes(device, depth);
    std::move(probes.begin(), probes.end(), std::back_inserter(checks));
  }
  for (const auto& problem : make_timed_problems())
    if (only.empty() || problem.op == only) add_timings(checks, problem);
  return checks;
}

int run_checks(int descriptor, Depth depth, const std::string& only) {
  const Speaker speaker(descriptor);
  const auto checks = make_checks(Device::current().info(), depth, only);
  for (std::size_t number; std::cin >> number;) {
    speaker.say({{"begin", number}});
    bool lost = false;
    const auto result = attempt(checks.at(number), lost);
    speaker.say({{"end", number},
                 {"verdict", static_cast<int>(result.verdict)},
                 {"detail", result.detail},
                 {"milliseconds", result.milliseconds},
                 {"lost", lost}});
    // The next check begins in a process whose device is as it should be.
    if (lost) break;
  }
  return 0;
}

}  // namespace clnet::tools
