// The loops, the grouping and the text of generated kernels, for a device that need not be there.
#include "lib/exec/fuse/fusion.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <sstream>

#include "clnet/clnet.h"
#include "lib/exec/choose/solver.h"
#include "lib/exec/fuse/expression.h"
#include "lib/exec/lower/lower.h"
#include "tests/paths.h"
#include "tests/support/leaf.h"

using namespace clnet;
using namespace clnet::exec;
using clnet::test::leaf;

namespace {

DeviceInfo device(bool cpu) {
  DeviceInfo info;
  info.compute_units = 4;
  info.max_work_group_size = 256;
  info.native_float_width = cpu ? 8 : 1;
  info.prefers_vector_kernels = cpu;
  info.cache = 32 << 20;
  return info;
}

Recording recorded(const std::vector<Tensor>& wanted, bool cpu = true) {
  return lower(Subgraph(collect(wanted)), device(cpu)).recording;
}

std::vector<std::string> functions(const Recording& recording) {
  std::vector<std::string> result;
  for (const auto& command : recording.commands())
    if (const auto* launch = std::get_if<Launch>(&command)) result.push_back(launch->function());
  return result;
}

using Names = std::vector<std::string>;

/// Compares the generated kernels with tests/golden/NAME.cl; CLNET_GOLDEN=write writes that file.
void check_golden(const std::string& name, const std::vector<Tensor>& wanted, bool cpu = true) {
  std::string text;
  const auto recording = recorded(wanted, cpu);
  for (const auto& command : recording.commands()) {
    const auto& launch = std::get<Launch>(command);
    if (launch.program().source.empty()) continue;
    for (const auto& [define, value] : launch.program().defines) text += "#define " + define + ' ' + value + '\n';
    text += launch.program().source;
  }
  const auto path = std::string(CLNET_SOURCE_DIR) + "/tests/golden/" + name + ".cl";
  const char* write = std::getenv("CLNET_GOLDEN");
  if (write && std::string(write) == "write") std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  CHECK(text == golden.str());
}

}  // namespace

TEST_CASE("expressions are renamed word by word, and have a cost") {
  const auto names = [](std::string_view name) { return "<" + std::string(name) + ">"; };
  CHECK(rename("a > 0 ? a : p0 * expm1(a) + 0x1p-2f + 1e-3f", names) == "<a> > 0 ? <a> : <p0> * expm1(<a>) + 0x1p-2f + 1e-3f");
  CHECK(rename("clnet_uniform((ulong)b, (ulong)i)", names) == "clnet_uniform((ulong)<b>, (ulong)<i>)");
  CHECK(uses_index("a + b * i"));
  CHECK_FALSE(uses_index("isnan(a) ? 1 : 0"));
  CHECK(cost("a + b") == 1);
  CHECK(cost("a / b") == 4);
  CHECK(cost("exp(a)") == 16);
}

TEST_CASE("loops are cut where any shape's dimensions end, and joined where all strides allow it") {
  CHECK(*common_loops({{2, 3, 4}, {6, 4}}) == std::vector<std::int64_t>{2, 3, 4});
  CHECK(*common_loops({{1, 6, 1}, {6}}) == std::vector<std::int64_t>{6});
  CHECK_FALSE(common_loops({{2, 3}, {3, 2}}));
  std::vector<std::int64_t> loops{2, 3, 4};
  Strides all = linear_strides(loops), channel = *broadcast_strides({3, 1}, {2, 3, 4}, all, loops);
  CHECK(channel == Strides{0, 1, 0});
  CHECK(*broadcast_strides({4}, {6, 4}, all, loops) == Strides{0, 0, 1});
  CHECK_FALSE(broadcast_strides({1, 2}, {12, 2}, {4, 1}, {6, 4}));
  Strides row = *broadcast_strides({2, 1, 1}, {2, 3, 4}, all, loops);
  join_loops(loops, {&all, &row});
  CHECK(loops == std::vector<std::int64_t>{2, 12});
  CHECK(row == Strides{1, 0});
}

TEST_CASE("chains and trees become one kernel") {
  const Tensor x = leaf({4, 8, 6, 6}), bias = leaf({8});
  CHECK(functions(recorded({relu(x + reshape(bias, {8, 1, 1}))})) == Names{"fused_add_relu"});
  CHECK(functions(recorded({reshape(relu(x), {4, 288}) * leaf({288})})) == Names{"fused_relu_mul"});
  CHECK(functions(recorded({square(x - leaf({1})) * square(x)})) == Names{"fused_sub_square_square_mul"});
}

TEST_CASE("a value that others need is written by the kernel that makes it") {
  const Tensor x = leaf({8, 6}), y = exp(x), total = sum(y), z = y * 2.0;
  const auto recording = recorded({total, z});
  CHECK(functions(recording)[0] == "fused_exp_mul");
  const auto& launch = std::get<Launch>(recording.commands()[0]);
  std::size_t outputs = 0;
  for (const auto& argument : launch.arguments())
    if (const auto* buffer = std::get_if<BufferArg>(&argument)) outputs += buffer->writes;
  CHECK(outputs == 2);
}

TEST_CASE("operations with another kernel between them stay apart") {
  const Tensor x = leaf({8, 6}), y = exp(x);
  const auto names = functions(recorded({y - sum(y, {1}, true)}));
  CHECK(names.front() == "exp_elementwise");
  CHECK(names.back() == "sub_elementwise");
}

TEST_CASE("cheap values are computed again instead of being written, dear ones are not") {
  const Tensor x = leaf({8, 640}), a = leaf({8, 1}), b = leaf({8, 1});
  CHECK(functions(recorded({x * (a + b)})) == Names{"fused_add_mul"});
  CHECK(functions(recorded({x * exp(a + b)})) == Names{"fused_add_exp", "mul_elementwise"});
  const Tensor positive = greater(x, 0.0), chosen = where(positive, x, 0.0 * x);
  CHECK(functions(recorded({where(positive, softmax(chosen, 1), chosen)})).size() == 2);
  const Tensor wide = exp(a);
  CHECK(functions(recorded({wide, x * wide})).size() == 2);
}

TEST_CASE("what a reduction alone reads is computed where it is loaded") {
  const Tensor a = leaf({8, 6}), b = leaf({8, 6}, Dtype::f16), d = a - cast(b, Dtype::f32);
  const auto recording = recorded({sum(d * d, {1})});
  REQUIRE(functions(recording) == Names{"reduce_rows_cpu"});
  const auto& defines = std::get<Launch>(recording.commands()[0]).program().defines;
  CHECK(defines.at("TYPE_x") == "computed");
  CHECK(defines.at("PROLOGUE_PARAMETERS") == ", IN_SHARED(b1)");
  CHECK(defines.at("PROLOGUE_FUNCTION_PARAMETERS") == ", IN_SHARED(b0), IN_SHARED(b1)");
  CHECK(defines.at("PROLOGUE_ARGUMENTS") == ", x_base, x_offset, b1_base, b1_offset");
  CHECK(defines.at("PROLOGUE_BODY") ==
        " \\\n  const VALUE(b0) a0 = LOAD(b0, i); \\\n  const VALUE(b1) a1 = LOAD(b1, i); \\\n  const float v0 = a1; /* cast */ "
        "\\\n  const float v1 = a0 - v0; /* sub */ \\\n  const float v2 = v1 * v1; /* mul */ \\\n  return v2;");
}

TEST_CASE("what alone follows a product is done by its kernel") {
  const ForceSolver conv_solver("conv2d", "direct"), matmul_solver("matmul", "direct");
  const auto conv = [](const Tensor& x) { return conv2d(x, leaf({8, 4, 3, 3}), leaf({8}), {.padding = 1}); };
  const Tensor x = leaf({2, 4, 6, 6}), residual = leaf({2, 8, 6, 6}), scale = leaf({8, 1, 1});
  CHECK(functions(recorded({relu(conv(x))})) == Names{"conv2d_direct"});
  CHECK(functions(recorded({relu(conv(x) * scale + residual)})) == Names{"conv2d_direct"});
  CHECK(functions(recorded({relu(conv(x) + conv(leaf({2, 4, 6, 6})))})) == Names{"conv2d_direct", "conv2d_direct"});
  CHECK(functions(recorded({relu(reshape(conv(x), {2, 288}))})) == Names{"conv2d_direct"});
  CHECK(functions(recorded({gelu(linear(leaf({5, 7}), leaf({3, 7}), leaf({3})))})) == Names{"matmul_direct"});
  const Tensor y = conv(x);
  CHECK(functions(recorded({y, relu(y)})) == Names{"conv2d_direct", "relu_elementwise"});
  CHECK(functions(recorded({sum(y), relu(y)})).size() > 2);
  // A column of its own for every row is none of the channels' numbers.
  CHECK(functions(recorded({conv(x) * leaf({2, 1, 1, 1})})) == Names{"conv2d_direct", "mul_elementwise"});
}

TEST_CASE("small results that nothing depends on share kernels") {
  std::vector<Tensor> results;
  for (int k = 0; k < 5; ++k)
    for (std::int64_t size : {16, 64}) results.push_back(leaf({size}) * 0.9 + leaf({size}) * 0.1);
  CHECK(recorded(results).commands().size() == 2);
}

TEST_CASE("kernels have at most 32 buffers and stay within the parameters' limit") {
  Tensor product_of_many = leaf({100});
  for (int k = 0; k < 60; ++k) product_of_many = product_of_many * leaf({100});
  const auto recording = recorded({product_of_many});
  CHECK(recording.commands().size() == 2);
  for (const auto& command : recording.commands()) CHECK(std::get<Launch>(command).arguments().size() <= 34);
}

TEST_CASE("sums of any number of values share a few kernels") {
  const auto sizes = [](int count) {
    Tensor total = leaf({100});
    for (int k = 0; k < count; ++k) total = total + leaf({100});
    std::vector<std::size_t> result;
    const auto recording = recorded({total});
    for (const auto& command : recording.commands()) {
      const auto& arguments = std::get<Launch>(command).arguments();
      result.push_back(static_cast<std::size_t>(std::count_if(
          arguments.begin(), arguments.end(), [](const auto& argument) { return std::holds_alternative<BufferArg>(argument); })));
    }
    return result;
  };
  using Sizes = std::vector<std::size_t>;
  // One more than the sums is read, and one is written.
  for (const int count : {1, 2, 3, 4}) CHECK(sizes(count) == Sizes{static_cast<std::size_t>(count) + 2});
  CHECK(sizes(5) == Sizes{6, 3});
  CHECK(sizes(60) == Sizes{18, 18, 18, 10, 6});
  CHECK(sizes(64) == Sizes{18, 18, 18, 18});
  // What somebody reads in between ends a chain.
  Tensor first = leaf({100});
  for (int k = 0; k < 4; ++k) first = first + leaf({100});
  Tensor second = first;
  for (int k = 0; k < 4; ++k) second = second + leaf({100});
  CHECK(functions(recorded({first, second})).size() == 1);
}

TEST_CASE("no index of a generated kernel exceeds an int, up to the largest tensor") {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto pieces = recorded({relu(leaf({most}, Dtype::u8))});
  const auto& launch = std::get<Launch>(pieces.commands().at(0));
  std::vector<std::int64_t> integers;
  for (const auto& argument : launch.arguments())
    if (const auto* integer = std::get_if<std::int32_t>(&argument)) integers.push_back(*integer);
  REQUIRE(integers.size() == 2);
  const auto count = integers[0], piece = integers[1], items = static_cast<std::int64_t>(launch.global()[0]);
  CHECK(count == most);
  CHECK(items * piece >= count);
  CHECK((items - 1) * piece < count);
  CHECK(launch.program().source.find("to = from + min(piece, n0 - from)") != std::string::npos);
  // A work-item per element, or per eight: none beyond the last one that an int can count.
  const auto wide = recorded({leaf({most}, Dtype::i64) * 3}, false), bytes = recorded({relu(leaf({most}, Dtype::u8))}, false);
  CHECK(std::get<Launch>(wide.commands().at(0)).global()[0] == static_cast<std::size_t>(most));
  CHECK(std::get<Launch>(bytes.commands().at(0)).global()[0] == static_cast<std::size_t>(most / 8 + 1));
  const auto rows = recorded({leaf({most / 7, 7}) + leaf({7})}, false);
  CHECK(std::get<Launch>(rows.commands().at(0)).global()[0] <= static_cast<std::size_t>(most));
}

TEST_CASE("the text of generated kernels") {
  const Tensor x = leaf({4, 8, 30, 30}), g = leaf({4, 8, 30, 30});
  const auto bias = [] { return reshape(leaf({8}), {8, 1, 1}); };
  SECTION("bias and activation on a CPU") { check_golden("bias_gelu_cpu", {gelu(x + bias(), Gelu::tanh)}); }
  SECTION("the same on other devices") { check_golden("bias_gelu", {gelu(x + bias(), Gelu::tanh)}, false); }
  SECTION("the gradient of relu") { check_golden("relu_gradient_cpu", {where(greater(x, 0.0), g, Tensor::scalar(0))}); }
  SECTION("results larger than the cache") {
    const Tensor large = leaf({4, 8, 600, 600});
    check_golden("nontemporal_stores_cpu", {large + bias(), relu(large)});
  }
  SECTION("half precision, with rounding between the operations") {
    const Tensor half = leaf({1000}, Dtype::f16);
    check_golden("half_swish_cpu", {half * sigmoid(half)});
  }
  SECTION("dropout after an activation, both kept") {
    const Tensor y = relu(x);
    manual_seed(1);
    check_golden("relu_dropout_cpu", {y, dropout(y, 0.5)});
  }
  SECTION("several elements per work-item, the last ones one by one") {
    const Tensor half = leaf({4097}, Dtype::f16);
    check_golden("half_swish", {half * sigmoid(half), greater(half, 0.0)}, false);
  }
  SECTION("short rows on other devices") { check_golden("rows", {leaf({100, 10}) * leaf({10}) + leaf({100, 1})}, false); }
}
