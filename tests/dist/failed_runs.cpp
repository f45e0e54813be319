// Evaluations that fail while ranks add: `dist_failed_runs WAY`. tests/dist/run.sh starts it under a launcher.
#include <clnet/clnet.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/dist/exchange.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "tests/dist/trained.h"

namespace {

using namespace clnet;
using namespace clnet::test;
using dist::Group;

/// Fails when it is evaluated.
class FailsOp : public Op {
 public:
  std::string_view name() const override { return "fails"; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  void lower(exec::Recorder& recorder) const override {
    recorder.host({.name = "fails", .reads = {recorder.input(0)}, .writes = {recorder.output(0)}, .call = [](exec::HostContext&) {
                     throw Error("the host call fails");
                   }});
  }
};

/// An evaluation on rank 0 whose sums are on the way when it fails. It ends with the failure once they are there.
void fail_among_sums(const Tensor& x, const Group& world) {
  std::vector<Tensor> wanted{apply(std::make_shared<FailsOp>(), {2.0 * x})};
  for (auto& sum : dist::all_reduce_beside({3.0 * x, x}, world)) wanted.push_back(std::move(sum));
  std::string text;
  try {
    eval(wanted);
  } catch (const Error& error) {
    text = error.what();
  }
  require(text.find("the host call fails") != std::string::npos, "an evaluation fails while ranks add: " + text);
}

/// Others get the sums of an evaluation that fails on one rank, and all go on.
void failed_run(const Group& world) {
  const auto ranks = static_cast<float>(world.size());
  const std::int64_t n = 300'000;
  const Tensor x = full({n}, world.rank() + 1.0);
  const auto add = [&] { return dist::all_reduce_beside({3.0 * x, x}, world); };
  for (int round = 0; round < 3; ++round) {
    if (world.rank() == 0) {
      fail_among_sums(x, world);
    } else {
      const auto sums = add();
      eval(sums);
      require(sums[0].to_vector<float>().back() == 3 * ranks * (ranks + 1) / 2, "a sum with a rank that fails");
    }
    // What fails leaves memory to others.
    const auto mine = (x * x).to_vector<float>(), sums = add()[1].to_vector<float>();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      require(mine[i] == static_cast<float>((world.rank() + 1) * (world.rank() + 1)), "a product after a failed run");
      require(sums[i] == ranks * (ranks + 1) / 2, "a sum after a failed run");
    }
  }
}

/// Nobody brings what the failed evaluation adds: the job ends.
void failed_run_alone(const Group& world) {
  if (world.rank() == 0) fail_among_sums(full({300'000}, 1.0), world);
  std::this_thread::sleep_for(std::chrono::seconds(60));
}

const Ways ways{{"failed-run", failed_run}, {"failed-run-alone", failed_run_alone}};

}  // namespace

int main(int argc, char** argv) { return run_way(argc, argv, ways); }
