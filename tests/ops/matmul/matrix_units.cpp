// Units that multiply small matrices: by their emulation on CPUs, and by what a GPU claims and tries.
#include "lib/cl/matrix_units.h"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "lib/cl/context.h"
#include "lib/cl/quirk_file.h"
#include "lib/exec/choose/solver.h"
#include "lib/ops/matmul/matmul_solvers.h"
#include "tests/ops/check.h"
#include "tests/paths.h"
#include "tests/support/gpu_info.h"
#include "tests/support/skip.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Catch::Matchers::Contains;
using ocl::UnitElement;

using clnet::test::gpu_info;

namespace {

/// One of Intel's, whose kernels may ask for sub-groups of this size and more.
DeviceInfo intel(std::size_t smallest_sub_group) {
  auto info = gpu_info("");
  info.smallest_sub_group = smallest_sub_group;
  info.matrix_units = true;
  info.local_memory = 64 << 10;
  return info;
}

ops::MatmulProblem square(Dtype dtype, std::int64_t n) {
  ops::MatmulProblem problem;
  problem.dtype = dtype;
  problem.m = problem.n = problem.k = n;
  return problem;
}

/// Tiles of 32 x 32 for each layout that the emulation has; of a GPU, whatever it has.
std::vector<exec::Choice> layouts() {
  if (Device::current().info().type != DeviceType::cpu) return {{"matrix_units_gpu", {}}};
  std::vector<exec::Choice> result;
  for (const auto& config : ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 32), Device::current().info()))
    result.push_back({"matrix_units_gpu", config});
  return result;
}

std::string solver_for(Dtype dtype, std::int64_t n, const DeviceInfo& device) {
  return std::string(ops::matmul_solvers().choose(square(dtype, n), device).solver->name);
}

/// Values of few digits, which every element holds.
Tensor drawn(const Shape& shape, Dtype dtype, std::uint64_t seed) {
  auto values = testing::make_values({shape, -2, 2}, seed);
  for (auto& value : values.values) value = std::round(value * 16) / 16;
  return testing::to_tensor(values, dtype);
}

/// The product by the reference solver and by matrix units, in this configuration or in the first.
void compare(const Tensor& a, const Tensor& b, const MatmulOptions& options, double tolerance,
             const exec::Choice& choice = {"matrix_units_gpu", {}}) {
  const auto by = [&](const exec::ForceSolver&) { return cast(matmul(a, b, options), Dtype::f32).to_vector<float>(); };
  const auto expected = by(exec::ForceSolver("matmul", "direct"));
  const auto values =
      by(choice.config.empty() ? exec::ForceSolver("matmul", "matrix_units_gpu") : exec::ForceSolver("matmul", choice));
  REQUIRE(values.size() == expected.size());
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    error = std::max(error, std::isnan(values[i]) ? HUGE_VAL : std::abs(static_cast<double>(values[i]) - expected[i]));
  CHECK(error <= tolerance);
}

/// Whether this device's solver can be run: a GPU may have no such units.
bool runs_here(UnitElement element) {
  const auto refusal = ocl::matrix_unit_refusal(Device::current().info(), element);
  if (refusal) test::skip(*refusal);
  return !refusal;
}

}  // namespace

TEST_CASE("matrix units multiply every layout, edge and alignment") {
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    if (!runs_here(dtype == Dtype::f16 ? UnitElement::f16 : UnitElement::bf16)) continue;
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        // Lines that begin at multiples of 16 bytes, and others; one tile and several, none of them full.
        for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{40, 56, 72}, {33, 47, 35}, {8, 8, 8}, {1, 70, 9}}) {
          INFO(to_string(dtype) << " " << m << "x" << n << "x" << k << " " << ta << tb);
          const auto a = drawn(ta ? Shape{k, m} : Shape{m, k}, dtype, 1), b = drawn(tb ? Shape{n, k} : Shape{k, n}, dtype, 2);
          // All products and sums are exact, and the results rounded once.
          for (const auto& layout : layouts()) {
            INFO(layout.text());
            compare(a, b, {ta, tb}, 0, layout);
          }
        }
  }
}

TEST_CASE("matrix units read operands that begin anywhere") {
  if (!runs_here(UnitElement::f16)) return;
  const auto all = drawn({50, 40}, Dtype::f16, 3).detach(), b = drawn({40, 24}, Dtype::f16, 4);
  all.eval();
  const auto flat = reshape(all, {2000});
  for (const std::int64_t begin : {1, 4, 8, 39}) {
    INFO(begin);
    compare(reshape(slice(flat, 0, begin, begin + 1600), {40, 40}), b, {}, 0);
    // One that was evaluated before, so that the plan does not know where it begins.
    const auto part = reshape(slice(flat, 0, begin, begin + 1600), {40, 40});
    part.eval();
    compare(part, b, {}, 0);
  }
}

TEST_CASE("every tile for matrix units computes the same") {
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    if (!runs_here(dtype == Dtype::f16 ? UnitElement::f16 : UnitElement::bf16)) continue;
    // A CPU lists the smallest only, and emulates all of them.
    std::vector<exec::Config> configs;
    const auto list = [&](const DeviceInfo& device) {
      for (auto& config : ops::matmul_matrix_units_gpu_configs(square(dtype, 128), device)) {
        if (device.smallest_sub_group > 0) config.add("wave", static_cast<std::int64_t>(device.smallest_sub_group));
        configs.push_back(std::move(config));
      }
    };
    const auto& device = Device::current().info();
    if (device.type == DeviceType::cpu)
      // Of Intel's one dtype is enough, as words lie alike and every program is compiled.
      for (const auto& other :
           dtype == Dtype::f16 ? std::vector{gpu_info("sm_86"), intel(8), intel(16)} : std::vector{gpu_info("sm_86")})
        list(other);
    else
      configs = ops::matmul_matrix_units_gpu_configs(square(dtype, 128), device);
    CHECK(configs.size() >= 2);
    const auto a = drawn({131, 72}, dtype, 5), b = drawn({72, 140}, dtype, 6), odd = drawn({99, 30}, dtype, 7);
    for (const auto& config : configs) {
      INFO(config.text());
      compare(a, b, {}, 0, {"matrix_units_gpu", config});
      for (const bool ta : {false, true}) compare(odd, odd, {ta, !ta}, 0, {"matrix_units_gpu", config});
    }
  }
}

TEST_CASE("sums that are too long for one float are cut for matrix units, too") {
  if (!runs_here(UnitElement::f16)) return;
  const exec::Choice rounds{"matrix_units_gpu", {{"m", 32}, {"n", 32}, {"k", 32}, {"rows", 16}, {"columns", 16}, {"parts", 1}}},
      parts{"matrix_units_gpu", {{"m", 32}, {"n", 32}, {"k", 32}, {"rows", 16}, {"columns", 16}, {"parts", 3}}};
  if (ocl::matrix_unit(Device::current().info())->wave != 32) return test::skip("the tile is for waves of 32");
  const auto a = drawn({2, 9, 2500}, Dtype::f16, 8), b = drawn({2, 2500, 17}, Dtype::f16, 9);
  for (const auto& choice : {rounds, parts}) compare(a, b, {}, 0.5, choice);
}

TEST_CASE("f32 goes to matrix units where CLNET_TF32 allows to round it") {
  CHECK(solver_for(Dtype::f32, 100, gpu_info("sm_86")) == "gpu");
  const test::Variable allowed("CLNET_TF32", "1");
  CHECK(solver_for(Dtype::f32, 100, gpu_info("sm_86")) == "matrix_units_gpu");
  CHECK(solver_for(Dtype::f32, 100, gpu_info("sm_75")) == "gpu");
  CHECK(solver_for(Dtype::f32, 100, gpu_info("gfx1100")) == "gpu");
  CHECK(solver_for(Dtype::f32, 100, intel(8)) == "gpu");
  if (!runs_here(UnitElement::tf32)) return;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{40, 36, 20}, {33, 47, 35}}) {
        INFO(m << "x" << n << "x" << k << " " << ta << tb);
        compare(drawn(ta ? Shape{k, m} : Shape{m, k}, Dtype::f32, 1), drawn(tb ? Shape{n, k} : Shape{k, n}, Dtype::f32, 2),
                {ta, tb}, 0);
      }
  // 1 + 2^-11 is halfway, and goes away from zero; a little less does not; infinities and NaN stay.
  const exec::ForceSolver force("matmul", "matrix_units_gpu");
  const auto x = Tensor::from({1 + 0x1p-11F, 1 + 0x1p-12F, -1 - 0x1p-11F, HUGE_VALF, NAN}, Shape{5, 1});
  const auto y = matmul(x, ones({1, 1})).to_vector<float>();
  CHECK(y[0] == 1 + 0x1p-10F);
  CHECK(y[1] == 1);
  CHECK(y[2] == -1 - 0x1p-10F);
  CHECK(y[3] == HUGE_VALF);
  CHECK(std::isnan(y[4]));
}

TEST_CASE("f16 and bf16 go to matrix units on devices that have them") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  const auto chosen = [](Dtype dtype, const DeviceInfo& device) { return solver_for(dtype, 200, device); };
  CHECK(chosen(Dtype::f16, gpu_info("sm_86")) == "matrix_units_gpu");
  CHECK(chosen(Dtype::bf16, gpu_info("sm_90")) == "matrix_units_gpu");
  CHECK(chosen(Dtype::f16, gpu_info("sm_75")) == "matrix_units_gpu");
  CHECK(chosen(Dtype::bf16, gpu_info("sm_75")) == "gpu");
  CHECK(chosen(Dtype::f16, gpu_info("sm_70")) == "gpu");
  CHECK(chosen(Dtype::f16, gpu_info("sm_61")) == "gpu");
  CHECK(chosen(Dtype::bf16, gpu_info("gfx1100")) == "matrix_units_gpu");
  CHECK(chosen(Dtype::f16, gpu_info("gfx1100", 64)) == "gpu");
  CHECK(chosen(Dtype::f16, gpu_info("gfx1201")) == "gpu");
  CHECK(chosen(Dtype::bf16, gpu_info("gfx90a", 64)) == "matrix_units_gpu");
  CHECK(chosen(Dtype::bf16, gpu_info("gfx908", 64)) == "gpu");
  CHECK(chosen(Dtype::f16, gpu_info("")) == "gpu");
  for (const std::size_t smallest : {8, 16}) {
    CHECK(chosen(Dtype::f16, intel(smallest)) == "matrix_units_gpu");
    CHECK(chosen(Dtype::bf16, intel(smallest)) == "matrix_units_gpu");
    CHECK(ocl::matrix_unit(intel(smallest))->wave == static_cast<std::int64_t>(smallest));
  }
  CHECK(chosen(Dtype::f16, intel(32)) == "gpu");
  auto without = intel(8);
  without.matrix_units = false;
  CHECK(chosen(Dtype::f16, without) == "gpu");
  // Groups of 256 hold the largest tile in waves of any width.
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), gpu_info("sm_86"))[0]["m"] == 128);
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), gpu_info("sm_86"))[0].value("stages", 0) == 3);
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), gpu_info("sm_75"))[0].value("stages", 0) == 0);
  auto small = gpu_info("sm_86");
  small.local_memory = (48 << 10) - 1;
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), small)[0].value("stages", 0) == 0);
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), gpu_info("gfx90a", 64))[0]["m"] == 128);
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), intel(8))[0]["m"] == 128);
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 4096), intel(16))[0]["m"] == 128);
  CHECK(ops::matmul_matrix_units_gpu_configs(square(Dtype::f16, 40), gpu_info("sm_86"))[0]["m"] == 32);
  auto narrow = square(Dtype::f16, 200);
  narrow.n = 3;
  CHECK(ops::matmul_solvers().choose(narrow, gpu_info("sm_86")).solver->name == "gpu");
  // Never by itself on a CPU.
  auto cpu = gpu_info("");
  cpu.type = DeviceType::cpu;
  CHECK(chosen(Dtype::f16, cpu) != "matrix_units_gpu");
}

TEST_CASE("one multiplication shows whether a device has a matrix unit") {
  const auto& context = *context_of(Device::current());
  const auto& info = context.info();
  for (const auto element : {UnitElement::f16, UnitElement::bf16, UnitElement::tf32}) {
    INFO(to_string(element));
    if (!runs_here(element)) continue;
    CHECK(ocl::try_matrix_unit(context.device(), info, ocl::matrix_unit(info).value(), element).empty());
  }
  if (info.type != DeviceType::cpu) return;
  for (const auto& unit : ocl::emulated_units())
    for (const auto element : {UnitElement::f16, UnitElement::bf16}) {
      INFO(unit.name << " " << to_string(element));
      CHECK(ocl::try_matrix_unit(context.device(), info, unit, element).empty());
    }
  // No other unit's program compiles here, and that is no more than a reason.
  for (const char* name : {"wmma", "mfma", "dpas8", "dpas16"}) {
    const auto fault = ocl::try_matrix_unit(context.device(), info, {name, 64}, UnitElement::f16);
    CHECK_THAT(fault, Contains("does not compile"));
  }
}

TEST_CASE("a unit that multiplies wrongly is found out") {
  const auto& context = *context_of(Device::current());
  if (context.info().type != DeviceType::cpu) return;
  const auto original = file::read(std::string(CLNET_SOURCE_DIR) + "/kernels/matrix_units.clh", 1 << 20);
  const auto check = [&](const ocl::MatrixUnit& unit, const std::string& right, const std::string& wrong, const char* found) {
    const test::Folder kernels;
    auto text = original;
    REQUIRE(text.find(right) != std::string::npos);
    text.replace(text.find(right), right.size(), wrong);
    kernels.write("matrix_units.clh", text);
    const test::Variable folder("CLNET_KERNEL_DIR", kernels.path().c_str());
    CHECK_THAT(ocl::try_matrix_unit(context.device(), context.info(), unit, UnitElement::f16),
               Contains("is wrong") && Contains(found));
  };
  const auto units = ocl::emulated_units();
  check(units[0], "words_b + column % 8 * 16", "words_b + column % 4 * 16", "row 0, column 4");
  check(units[1], "(column) / 2 * 2 * UNIT_WORDS", "(column) / 4 * 2 * UNIT_WORDS", "row 0, column 2");
  check(units[2], "((column)*2 * UNIT_WORDS + (k))", "((column) / 2 * 4 * UNIT_WORDS + (k))", "row 0, column 1");
}

TEST_CASE("what came of trying matrix units is kept") {
  const test::Folder folder;
  const test::Variable cache("CLNET_CACHE_DIR", folder.path().c_str());
  auto device = gpu_info("sm_86");
  const auto refusal_of = [&](const char* name, const std::string& fault, const std::string& made_for = {}) {
    device.name = name;
    const auto path = ocl::matrix_units_file(device, UnitElement::f16).value();
    const nlohmann::json content{{"for", made_for.empty() ? ocl::identity(device) : made_for}, {"fault", fault}};
    file::replace(path, content.dump());
    return ocl::matrix_unit_refusal(device, UnitElement::f16).value_or("");
  };
  CHECK_THAT(refusal_of("first", "its compiler knows no mma.sync"), Contains("knows no mma.sync"));
  CHECK(solver_for(Dtype::f16, 200, device) == "gpu");
  // Once per process.
  CHECK_THAT(refusal_of("first", ""), Contains("knows no mma.sync"));
  CHECK(refusal_of("second", "").empty());
  CHECK(refusal_of("third", "of another driver", "another driver").empty());
  // Somebody is at it now; a minute later he has crashed.
  CHECK(refusal_of("fourth", "begun").empty());
  for (const auto& [name, minutes] : {std::pair{"fifth", -2}, std::pair{"by a clock that was set back since", 2}}) {
    device.name = name;
    const auto path = ocl::matrix_units_file(device, UnitElement::f16).value();
    file::replace(path, nlohmann::json{{"for", ocl::identity(device)}, {"fault", "begun"}}.dump());
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::minutes(minutes));
    CHECK_THAT(ocl::matrix_unit_refusal(device, UnitElement::f16).value_or(""), Contains("ended") && Contains(path));
  }
  device.name = "sixth";
  file::replace(ocl::matrix_units_file(device, UnitElement::f16).value(), "{");
  CHECK_FALSE(ocl::matrix_unit_refusal(device, UnitElement::f16).has_value());
}
