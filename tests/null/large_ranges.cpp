// Launches of more work-groups than NVIDIA takes in the second and third dimension, for tensors as large as a program may have.
#include <catch2/catch.hpp>

#include "clnet/clnet.h"

using namespace clnet;

TEST_CASE("as many planes, rows and matrices as a program may have are launched") {
  constexpr std::int64_t many = 70000;
  const Tensor planes = zeros({many / 100, 100, 4, 4});
  const auto run = [](const char* name, const Tensor& result) {
    INFO(name);
    CHECK_NOTHROW(result.eval());
  };
  run("max_pool2d", max_pool2d(planes, 2));
  run("avg_pool2d", avg_pool2d(planes, 2));
  run("max_pool2d's gradient", gradients(sum(max_pool2d(planes, 2)), {planes})[0]);
  run("interpolate", interpolate(planes, {.scale_factor = {2}, .mode = Interpolation::bilinear}));
  run("matmul", matmul(zeros({many, 5, 6}), zeros({many, 6, 7})));
  run("matmul of one shared", matmul(zeros({many, 5, 6}), zeros({6, 7})));
  run("matmul in f16", matmul(zeros({many, 5, 6}, Dtype::f16), zeros({many, 6, 7}, Dtype::f16)));
  run("linear", linear(zeros({many, 20}), zeros({30, 20}), zeros({30})));
  run("attention", scaled_dot_product_attention(zeros({many, 3, 4}), zeros({many, 3, 4}), zeros({many, 3, 4})));
  run("sort", sort(zeros({many, 9}), 1).values);
  run("index_select", index_select(zeros({many, 5, 3}), 1, zeros({2}, Dtype::i64)));
  run("gather", gather(zeros({many, 5}), 1, zeros({many, 2}, Dtype::i64)));
  run("index_add", index_add(zeros({many, 5, 3}), 1, zeros({2}, Dtype::i64), ones({many, 2, 3})));
  run("permute", permute(zeros({many, 5, 7}), {0, 2, 1}) + 0.0);
  run("a broadcast", zeros({many, 3, 5}) * zeros({many, 1, 5}) + zeros({3, 1}));
  run("pad", pad(planes, {0, 0, 1, 1}, {0, 0, 1, 1}));
  run("softmax", softmax(zeros({many, 5, 4}), 1));
  run("sum", sum(zeros({many, 5, 4}), {1}));
  run("layer_norm", layer_norm(zeros({many, 5}), 1, {}, {}));
  run("conv2d", conv2d(planes, zeros({3, 100, 3, 3}), {}, {.padding = 1}));
  run("depthwise", conv2d(planes, zeros({100, 1, 3, 3}), {}, {.padding = 1, .groups = 100}));
  run("a recurrence", lstm_layer(zeros({2, many, 3}), {}, {}, {zeros({20, 3}), zeros({20, 5}), {}, {}, {}}, {}).output);
}

TEST_CASE("a user's kernel that could not be launched in pieces is refused by name") {
  const auto make = [](const std::string& body) {
    return Kernel("rows", "kernel void rows(OUT(y)) { " + body + " }")
        .outputs([](const std::vector<Spec>&) {
          return std::vector{Spec{{70000, 2}, Dtype::f32}};
        })
        .range({2, 70000}, {1, 1});
  };
  CHECK_NOTHROW(make("STORE(y, get_global_id(1) * 2 + get_global_id(0), 1);").all({}).at(0).eval());
  const auto asks = make("STORE(y, get_group_id(1) * 2 + get_global_id(0), 1);");
  const auto result = asks.all({}).at(0);
  if (Device::current().info().max_groups_across < 70000)
    CHECK_THROWS_WITH(result.eval(),
                      Catch::Contains("kernel rows") && Catch::Contains("65535") && Catch::Contains("get_group_id"));
  else
    CHECK_NOTHROW(result.eval());
}
