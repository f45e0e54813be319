// What traces say of attention on GPUs, for tools/dev/model_time.py.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "clnet/clnet.h"
#include "lib/base/file.h"
#include "lib/exec/choose/solver.h"
#include "lib/ops/attention/attention.h"
#include "tests/support/temporary.h"

using namespace clnet;

TEST_CASE("a trace tells the multiply-adds of attention's kernels for GPUs") {
  const test::Folder folder;
  const exec::ForceSolver force("attention", "gpu");
  const Tensor q = ones({2, 3, 10, 16}).detach(), k = ones({2, 3, 20, 16}).detach(), v = ones({2, 3, 20, 8}).detach();
  const Tensor y = ops::streaming_attention(ops::checked_attention(q, k, v, {}));
  const auto slopes = gradients(sum(y * y), {q, k, v});
  Device device = Device::current();
  device.start_trace(folder / "trace.json");
  eval({slopes[0], slopes[1], slopes[2]});
  device.stop_trace();
  const auto trace = nlohmann::json::parse(file::read(folder / "trace.json", 1 << 20));
  std::map<std::string, double> flops;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") flops[event.at("name")] = event.at("args").at("flops");
  // Pairs of 10 queries and 20 keys of 2 * 3 heads, two for a multiply-add.
  const double pairs = 2.0 * 6 * 10 * 20;
  CHECK(flops["attention_gpu"] == pairs * (16 + 8));
  CHECK(flops["attention_backward_queries_gpu"] == pairs * (2 * 16 + 8));
  CHECK(flops["attention_backward_keys_gpu"] == pairs * (2 * 16 + 2 * 8));
}
