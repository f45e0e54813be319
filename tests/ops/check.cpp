#include "tests/ops/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>

#include "lib/cl/quirks.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/statistics.h"
#include "tests/support/skip.h"

namespace clnet::testing {

double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 0x1p-11;
    case Dtype::bf16: return 0x1p-8;
    case Dtype::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

namespace {

/// Outputs hold NaN before a kernel writes them, so that an element which no work-item writes is seen.
[[maybe_unused]] const int poisoned = setenv("CLNET_POISON", "1", 0);

double rounded(double value, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return static_cast<float>(value);
    case Dtype::f16: return half_to_float(float_to_half(static_cast<float>(value)));
    case Dtype::bf16: return bfloat16_to_float(float_to_bfloat16(static_cast<float>(value)));
    default: return value;
  }
}

Dtype storage(const Input& input, Dtype floating) { return input.dtype == Dtype::f32 ? floating : input.dtype; }

struct Prepared {
  Arrays arrays;
  std::vector<Tensor> tensors;
};

Prepared prepare(const Case& example, Dtype floating) {
  Prepared result;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    auto values = make_values(example.inputs[i], i + 1);
    result.tensors.push_back(to_tensor(values, storage(example.inputs[i], floating)));
    result.arrays.push_back(std::move(values));
  }
  return result;
}

void check_forward(const Case& example, Dtype dtype, const std::string& where) {
  const auto prepared = prepare(example, dtype);
  // A solver that refuses does so here, before the reference takes its time.
  Arrays got;
  for (const auto& output : example.run(prepared.tensors)) got.push_back(to_array(output));
  const auto want = example.reference(prepared.arrays);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    compare(where + ", output " + std::to_string(i), got[i], want[i], 100 * example.slack * unit_roundoff(dtype));
}

double weighted(const Arrays& outputs, const Arrays& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (std::int64_t k = 0; k < outputs[i].numel(); ++k) sum += outputs[i][k] * weights[i][k];
  return sum;
}

/// d(sum of outputs * weights)/d(input) by central differences of the reference, at no more than 64 elements of each input.
void check_gradient(const Case& example, const std::string& where) {
  auto prepared = prepare(example, Dtype::f32);
  const auto outputs = example.run(prepared.tensors);
  Arrays weights;
  std::vector<Tensor> differentiable_outputs, output_gradients, inputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Array weight(outputs[i].shape());
    if (is_floating(outputs[i].dtype())) {
      weight = make_values({outputs[i].shape(), -1, 1}, 100 + i);
      differentiable_outputs.push_back(outputs[i]);
      output_gradients.push_back(to_tensor(weight, Dtype::f32));
    }
    weights.push_back(std::move(weight));
  }
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < example.inputs.size(); ++i)
    if (example.inputs[i].dtype == Dtype::f32 && example.inputs[i].differentiable) {
      which.push_back(i);
      inputs.push_back(prepared.tensors[i]);
    }
  const auto got = gradients(differentiable_outputs, output_gradients, inputs);
  std::mt19937_64 random(7);
  for (std::size_t k = 0; k < which.size(); ++k) {
    auto& input = prepared.arrays[which[k]];
    const auto values = to_array(got[k]);
    REQUIRE(values.shape == input.shape);
    std::vector<std::int64_t> picks(static_cast<std::size_t>(input.numel()));
    for (std::size_t i = 0; i < picks.size(); ++i) picks[i] = static_cast<std::int64_t>(i);
    std::shuffle(picks.begin(), picks.end(), random);
    picks.resize(std::min<std::size_t>(picks.size(), 64));
    Array some({static_cast<std::int64_t>(picks.size())}), want(some.shape);
    for (std::size_t i = 0; i < picks.size(); ++i) {
      constexpr double step = 1e-6;
      const double value = input[picks[i]];
      input[picks[i]] = value + step;
      const double above = weighted(example.reference(prepared.arrays), weights);
      input[picks[i]] = value - step;
      const double below = weighted(example.reference(prepared.arrays), weights);
      input[picks[i]] = value;
      want[static_cast<std::int64_t>(i)] = (above - below) / (2 * step);
      some[static_cast<std::int64_t>(i)] = values[picks[i]];
    }
    compare(where + ", gradient of input " + std::to_string(which[k]), some, want, 2e-5 * example.slack);
  }
}

std::size_t sum_of(const std::map<std::string, std::size_t>& counts) {
  std::size_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

/// CLNET_TEST_ELEMENTS=n leaves out cases with more elements in their inputs, for devices that are simulated.
bool small_enough(const Case& example) {
  static const char* limit = std::getenv("CLNET_TEST_ELEMENTS");
  if (!limit) return true;
  std::int64_t elements = 0;
  for (const auto& input : example.inputs) elements += input.shape.numel();
  return elements <= std::stoll(limit);
}

/// `solver`: the one of `op` that is forced; empty: those that the device chooses.
void check_all(const std::vector<Case>& cases, ForcedRuns& runs, const std::string& op = {}, const std::string& solver = {}) {
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const auto& example = cases[index];
    if (!small_enough(example)) {
      clnet::test::skip("more elements than CLNET_TEST_ELEMENTS", example.name);
      continue;
    }
    const auto where = example.name + (solver.empty() ? "" : fmt::format(" by {}:{}", op, solver));
    INFO(where);
    // A solver may refuse some dtypes.
    const auto unless_refused = [&](const std::string& what, const auto& check) {
      try {
        runs.run(op, what, check);
      } catch (const Unsupported& refusal) {
        if (solver.empty()) throw;
        clnet::test::skip(refusal.what(), where);
      }
    };
    unless_refused(where, [&] {
      check_forward(example, Dtype::f32, where + " in f32");
      if (example.gradient) check_gradient(example, where);
    });
    if (example.all_dtypes)
      for (auto dtype : sampled_dtypes(index)) {
        const auto what = fmt::format("{} in {}", where, to_string(dtype));
        unless_refused(what, [&] { check_forward(example, dtype, what); });
      }
  }
}

}  // namespace

void check(const std::vector<Case>& cases, const std::vector<std::string>& solver_ops) {
  const auto kernels_before = exec::statistics().kernels;
  ForcedRuns chosen;
  check_all(cases, chosen);
  auto ran = chosen.ran();
  for (const auto& op : solver_ops) {
    const auto names = exec::solver_names(op);
    REQUIRE_FALSE(names.empty());
    ForcedRuns runs;
    for (const auto& name : names) {
      const exec::ForceSolver force(op, name);
      check_all(cases, runs, op, name);
    }
    runs.check();
    ran += runs.ran();
  }
  if (ran == 0) return clnet::test::skip("all cases are left out");
  CHECK(exec::statistics().kernels > kernels_before);
}

bool is_known_crash(const Error& error, const std::string& op, const DeviceInfo& device) {
  const auto forced = exec::forced_solver(op);
  if (!forced || !forced->strict || !ocl::has_quirk(device, "compiler-aborts")) return false;
  const std::string_view text = error.what();
  // The second half says that it was not another solver's kernel.
  return text.find(" the compiler of ") != std::string_view::npos &&
         text.ends_with(
             fmt::format("; {}: solver {} refuses: a kernel of it crashes the driver's compiler", op, forced->choice.solver));
}

bool ForcedRuns::run(const std::string& op, const std::string& what, const std::function<void()>& run) {
  const auto forced = exec::forced_solver(op);
  const auto solver = forced ? op + ":" + forced->choice.solver : std::string();
  try {
    run();
  } catch (const DeviceError& error) {
    if (!is_known_crash(error, op, Device::current().info())) throw;
    clnet::test::skip("the driver's compiler ends its process over a kernel", fmt::format("{}: {}", what, error.what()));
    ++left_out_[solver];
    return false;
  }
  ++ran_[solver];
  return true;
}

std::size_t ForcedRuns::ran() const { return sum_of(ran_); }

void ForcedRuns::check() const {
  const auto left_out = sum_of(left_out_);
  INFO(left_out << " left out, " << ran() << " ran");
  CHECK(left_out <= (ran() + left_out + 9) / 10);
  for (const auto& [solver, count] : left_out_) {
    if (count == 1) continue;
    INFO("all " << count << " runs of " << solver << " were left out");
    CHECK(ran_.contains(solver));
  }
}

Tensor to_tensor(Array& array, Dtype dtype) {
  for (auto& value : array.values) value = rounded(value, dtype);
  const Spec spec{array.shape, dtype};
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const auto put = [&](auto value) { std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value); };
    const double value = array.values[i];
    switch (dtype) {
      case Dtype::f32: put(static_cast<float>(value)); break;
      case Dtype::f64: put(value); break;
      case Dtype::f16: put(float_to_half(static_cast<float>(value))); break;
      case Dtype::bf16: put(float_to_bfloat16(static_cast<float>(value))); break;
      case Dtype::i32: put(static_cast<std::int32_t>(value)); break;
      case Dtype::i64: put(static_cast<std::int64_t>(value)); break;
      case Dtype::i8: put(static_cast<std::int8_t>(value)); break;
      case Dtype::u8:
      case Dtype::boolean: put(static_cast<std::uint8_t>(value)); break;
    }
  }
  return Tensor::from_bytes(bytes.data(), bytes.size(), spec);
}

Array to_array(const Tensor& tensor) {
  Array result(tensor.shape());
  if (is_floating(tensor.dtype())) {
    result.values = tensor.to_vector<double>();
  } else {
    const auto values = tensor.to_vector<std::int64_t>();
    std::transform(values.begin(), values.end(), result.values.begin(), [](auto v) { return static_cast<double>(v); });
  }
  return result;
}

Array make_values(const Input& input, std::uint64_t seed) {
  Array result(input.shape);
  std::mt19937_64 random(seed);
  const auto count = result.values.size();
  if (input.dtype == Dtype::f32) {
    for (std::size_t i = 0; i < count; ++i)
      result.values[i] = input.low + (static_cast<double>(i) + 0.37) * (input.high - input.low) / static_cast<double>(count);
    std::shuffle(result.values.begin(), result.values.end(), random);
  } else {
    std::uniform_int_distribution<std::int64_t> draw(static_cast<std::int64_t>(input.low), static_cast<std::int64_t>(input.high));
    for (auto& value : result.values) value = static_cast<double>(draw(random));
  }
  return result;
}

Tensor make_tensor(const Shape& shape, std::uint64_t seed, double low, double high) {
  auto array = make_values({shape, low, high}, seed);
  return to_tensor(array, Dtype::f32);
}

bool all_wanted() {
  static const char* wanted = std::getenv("CLNET_TEST_ALL");
  return wanted && std::string_view(wanted) == "1";
}

std::vector<Dtype> sampled_dtypes(std::size_t index) {
  if (all_wanted()) return {Dtype::f16, Dtype::bf16};
  return {index % 2 == 0 ? Dtype::f16 : Dtype::bf16};
}

void compare(const std::string& what, const Array& got, const Array& want, double tolerance) {
  INFO(what);
  REQUIRE(got.shape == want.shape);
  double largest = 1;
  for (double value : want.values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (std::int64_t i = 0; i < want.numel(); ++i) {
    const bool same = std::isnan(want[i])   ? std::isnan(got[i])
                      : std::isinf(want[i]) ? got[i] == want[i]
                                            : std::abs(got[i] - want[i]) <= tolerance * largest;
    if (!same) {
      INFO("element " << i << ": got " << got[i] << ", want " << want[i] << ", largest " << largest);
      CHECK(same);
      return;
    }
  }
  CHECK(true);
}

}  // namespace clnet::testing
