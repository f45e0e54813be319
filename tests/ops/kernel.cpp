#include <catch2/catch.hpp>

#include "clnet/clnet.h"
#include "lib/exec/statistics.h"
#include "tests/ops/check.h"

namespace clnet::testing {

namespace {

using Catch::Matchers::Contains;

constexpr const char* square_source = R"(kernel void square(IN(x), OUT(y), uint n) {
    uint i = get_global_id(0); if (i < n) STORE(y, i, LOAD(x, i) * LOAD(x, i)); })";

Kernel square() {
  return Kernel{"square", square_source}.gradient([](auto in, auto, auto g) { return std::vector{2.F * in[0] * g[0]}; });
}

}  // namespace

TEST_CASE("A kernel from source is an operation with a gradient, for every dtype") {
  const auto example = [](Shape shape) {
    return Case{.name = "square of " + to_string(shape),
                .inputs = {{shape}},
                .run = [](const std::vector<Tensor>& in) { return std::vector{square()(in[0])}; },
                .reference =
                    [](const Arrays& in) {
                      auto y = in[0];
                      for (auto& value : y.values) value *= value;
                      return Arrays{y};
                    }};
  };
  check({example({3}), example({2, 101}), example({})});
}

TEST_CASE("Kernels take several inputs, scalars and ranges, and make several outputs") {
  const Kernel add("add",
                   "kernel void add(IN(a), IN(b), OUT(y)) { int i = get_global_id(0); STORE(y, i, LOAD(a, i) + LOAD(b, i)); }");
  const auto x = Tensor::from<std::int32_t>({1, 2, 3});
  CHECK(add({x, x}).to_vector<std::int32_t>() == std::vector<std::int32_t>{2, 4, 6});
  CHECK(add(x, x).to_vector<std::int32_t>() == std::vector<std::int32_t>{2, 4, 6});

  const Kernel columns = Kernel("columns", R"(
      /* kernel void columns(nothing) */
      // Sums and scaled maxima of columns.
      __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
      void columns(IN(x), const int rows, const unsigned int width, float scale, OUT( sums ), OUT(largest)) {
        const int c = get_global_id(0);
        float sum = 0, most = LOAD(x, c);
        for (int r = 0; r < rows; ++r) {
          sum += LOAD(x, r * width + c);
          most = fmax(most, LOAD(x, r * width + c));
        }
        STORE(sums, c, sum);
        STORE(largest, c, most * scale);
      })")
                             .scalar("rows", 2)
                             .scalar("width", 3)
                             .scalar("scale", 0.5)
                             .outputs([](const auto& in) {
                               const Shape shape{in[0].shape[1]};
                               return std::vector<Spec>{{shape, Dtype::f32}, {shape, Dtype::f16}};
                             })
                             .range([](const auto&, const auto& out) { return out[0].shape.extents(); }, {1});
  const auto matrix = Tensor::from<float>({1, 5, 3, 4, 2, 6}, {2, 3});
  const auto outputs = columns.all({matrix});
  CHECK(outputs[0].to_vector<float>() == std::vector<float>{5, 7, 9});
  CHECK(outputs[1].dtype() == Dtype::f16);
  CHECK(outputs[1].to_vector<float>() == std::vector<float>{2, 2.5F, 3});
  // Another value is another operation of the same program.
  CHECK(columns.scalar("scale", 2).all({matrix})[1].to_vector<float>() == std::vector<float>{8, 10, 12});
  CHECK_THROWS_WITH(columns(matrix), "kernel columns: has 2 outputs; all() gives them");
}

TEST_CASE("A kernel's gradient sees zeros where nothing depends on an output") {
  const Kernel twins = Kernel("twins", R"(kernel void twins(IN(x), OUT(y), OUT(z)) {
        int i = get_global_id(0); STORE(y, i, LOAD(x, i)); STORE(z, i, 2 * LOAD(x, i)); })")
                           .gradient([](auto, auto, auto g) { return std::vector{g[0] + 2.0 * g[1]}; });
  const auto x = ones({3}), g = ones({3});
  const auto z = twins.all({x})[1];
  CHECK(gradients(std::vector{z}, std::vector{g}, std::vector{x})[0].to_vector<float>() == std::vector<float>(3, 2));
}

TEST_CASE("What is wrong with a kernel is said where it is used") {
  const auto x = ones({3});
  CHECK_THROWS_WITH(Kernel("cube", square_source), "kernel cube: the source has no function 'kernel void cube(...)'");
  CHECK_THROWS_WITH(Kernel("k", "kernel void k(global float *x) {}"),
                    "kernel k: parameter 'global float * x' is none of IN(x), OUT(y), int, uint and float");
  CHECK_THROWS_WITH(Kernel("k", "kernel void k(IN(x)) {}"), "kernel k: has no OUT parameter");
  CHECK_THROWS_WITH(Kernel("k", "kernel void k(IN(x)"), "kernel k: its list of parameters does not end");
  CHECK_THROWS_WITH(square()({x, x}), "kernel square: takes 1 (x) tensors, got 2");
  CHECK_THROWS_AS(square()(Tensor{}), Error);

  const Kernel scaled("scaled", "kernel void scaled(IN(x), OUT(y), const int shift, uint width) {}");
  CHECK_THROWS_WITH(scaled(x), "kernel scaled: parameter 'shift' has no value; give it one with scalar()");
  CHECK_THROWS_WITH(scaled.scalar("scale", 1), "kernel scaled: has no scalar parameter 'scale'");
  CHECK_THROWS_WITH(scaled.scalar("shift", 0.5), "kernel scaled: parameter 'shift' is of type int, which cannot hold 0.5");
  CHECK_THROWS_AS(scaled.scalar("width", -1), Error);
  CHECK_THROWS_AS(square().range({1, 2, 3, 4})(x), Error);
  CHECK_THROWS_AS(square().range({4}, {2, 2})(x), Error);
  CHECK_THROWS_WITH(square().range({0})(x), Contains("0"));

  const auto plain = Kernel("square", square_source)(x);
  CHECK_THROWS_AS(gradients(sum(plain), {x}), Unsupported);
  const auto two = square().gradient([](auto in, auto, auto) { return std::vector{in[0], in[0]}; })(x);
  CHECK_THROWS_WITH(gradients(sum(two), {x}), "kernel square: its gradient() gave 2 tensors for 1 inputs");

  const auto broken = Kernel("broken", "kernel void broken(IN(x), OUT(y)) {\n  STORE(y, 0, nonsense);\n}")(x);
  CHECK_THROWS_AS(broken.eval(), BuildError);
  CHECK_THROWS_WITH(broken.eval(), Contains("broken") && Contains("nonsense") && Contains("STORE(y, 0, nonsense);"));
}

TEST_CASE("Lines of a compiler's log are those of the user's source") {
  const auto broken =
      Kernel("broken", "kernel void broken(IN(x), OUT(y)) {\n  STORE(y, 0, LOAD(x, 0));\n  nonsense;\n}")(ones({3}));
  // However the compiler writes file and line.
  CHECK_THROWS_WITH(broken.eval(), (Contains("broken:3") || Contains("\"broken\", line 3")) && Contains("    3 |   nonsense;"));
  // The library's own would hide it.
  CHECK_THROWS_WITH(broken.eval(), Contains("#define TYPE_x f32") && !Contains("philox"));
}

TEST_CASE("Kernels see the extents of their tensors, and may add to zeros") {
  // The sums of columns, and how often each number comes.
  const Kernel columns("columns", R"(
    kernel void columns(IN(x), OUT(y), const uint x_size0, const int x_size1, const uint y_count) {
      const uint column = get_global_id(0);
      if (column >= y_count) return;
      float sum = 0;
      for (uint row = 0; row < x_size0; ++row) sum += LOAD(x, row * x_size1 + column);
      STORE(y, column, sum);
    })");
  const auto sums = columns.outputs([](const auto& in) { return std::vector<Spec>{{Shape{in[0].shape[1]}, in[0].dtype}}; });
  CHECK(sums(reshape(arange(6, 0, 1, Dtype::f32), {2, 3})).to_vector<float>() == std::vector<float>{3, 5, 7});
  CHECK_THROWS_WITH(sums.outputs([](const auto&) {
    return std::vector<Spec>{{Shape{3}, Dtype::f32}};
  })(ones({3})),
                    "kernel columns: parameter 'x_size1' is an extent that f32[3] does not have");
  CHECK(sums.scalar("x_size0", 1)(ones({5, 2})).to_vector<float>() == std::vector<float>{1, 1});

  const Kernel counts("counts", R"(
    kernel void counts(IN(x), OUT(y), const uint x_count) {
      for (uint i = 0; i < x_count; ++i) STORE(y, LOAD(x, i), LOAD(y, LOAD(x, i)) + 1);
    })");
  const auto histogram = counts.zeroed().range({1}).outputs([](const auto&) {
    return std::vector<Spec>{{Shape{4}, Dtype::f32}};
  });
  const auto numbers = Tensor::from({1, 3, 1, 1});
  // What was there before must not be seen.
  for (int again = 0; again < 3; ++again) CHECK((histogram(numbers) * 2).to_vector<float>() == std::vector<float>{0, 6, 0, 2});
}

TEST_CASE("A kernel over zeros may have nothing to do") {
  const auto scatter = Kernel("scatter", R"(
    kernel void scatter(IN(x), IN(place), OUT(y)) {
      const uint i = get_global_id(0);
      STORE(y, LOAD(place, i), LOAD(x, i));
    })")
                           .outputs([](const auto& in) {
                             return std::vector<Spec>{{Shape{4}, in[0].dtype}};
                           })
                           .range([](const auto& in, const auto&) { return std::vector{in[0].shape.numel()}; });
  const std::vector<Tensor> some{Tensor::from({1.0F, 2.0F}), Tensor::from({3, 0})}, none{zeros({0}), zeros({0}, Dtype::i32)};
  CHECK(scatter.zeroed()(some).to_vector<float>() == std::vector<float>{2, 0, 0, 1});
  CHECK((scatter.zeroed()(none) + 1).to_vector<float>() == std::vector<float>{1, 1, 1, 1});
  CHECK_THROWS_WITH(scatter(none), "kernel scatter: the range [0] is empty, but f32[4] is to be written");
}

TEST_CASE("Another value of a kernel's scalar makes no new plan") {
  const Kernel scaled("scaled", R"(
    kernel void scaled(IN(x), OUT(y), const uint n, const float by, const uint offset) {
      const uint i = get_global_id(0);
      if (i < n) STORE(y, i, LOAD(x, i) * by + (offset == 4294967295u ? 1 : 0));
    })");
  const auto of_gradient = scaled.gradient([&](auto, auto, auto g) { return std::vector{g[0] * 3}; });
  const auto x = ones({5}).detach();
  const auto run = [&](float by, double offset) {
    const auto y = of_gradient.scalar("by", by).scalar("offset", offset)(x);
    const auto dx = gradients(sum(y), {x})[0];
    eval({y, dx});
    CHECK(dx.to_vector<float>() == std::vector<float>(5, 3));
    return y.to_vector<float>()[4];
  };
  CHECK(run(2, 0) == 2);
  const auto plans = exec::statistics().plans_made;
  CHECK(run(7, 4294967295.0) == 8);
  CHECK(exec::statistics().plans_made == plans);
}

TEST_CASE("gradients of another dtype than their values are refused, and who gave them is named") {
  const Tensor u = Tensor::from({1.f});
  const Kernel copy =
      Kernel("copy",
             "kernel void copy(IN(a), OUT(b), const uint n) { uint i = get_global_id(0); if (i < n) STORE(b, i, LOAD(a, i)); }")
          .gradient([](auto, auto, auto g) { return std::vector{cast(g[0], Dtype::f16)}; });
  CHECK_THROWS_WITH(gradients(sum(copy(u)), {u}), "gradients: copy gives a gradient f16[1] for a value f32[1]");
  const std::vector<Tensor> values{u}, wrong{zeros({1}, Dtype::i32)};
  CHECK_THROWS_AS(gradients(values, wrong, values), DtypeError);
}

TEST_CASE("an empty range for an output with elements, and a float that is none, are refused") {
  const std::vector<std::int64_t> none{0};
  const Kernel fill("fill", "kernel void fill(IN(a), OUT(b), const float v) { STORE(b, get_global_id(0), v); }");
  CHECK_THROWS_WITH(fill.scalar("v", 1).range(none)(ones({2})),
                    "kernel fill: the range [0] is empty, but f32[2] is to be written");
  CHECK(fill.scalar("v", 1).range(none)(ones({0})).numel() == 0);
  CHECK_THROWS_WITH(fill.scalar("v", 1e300), "kernel fill: parameter 'v' is of type float, which cannot hold 1e+300");
}

}  // namespace clnet::testing
