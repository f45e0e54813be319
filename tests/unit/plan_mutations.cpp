// The verifier against mutations: built plans are changed at random, and what changes a result must be found. What a change does
// is decided by running the plan over numbers (tests/support/plan_oracle.h). No device is needed.
#include <catch2/catch.hpp>
#include <random>

#include "clnet/clnet.h"
#include "lib/exec/lower/lower.h"
#include "lib/exec/place/verify.h"
#include "tests/support/leaf.h"
#include "tests/support/plan_oracle.h"

using namespace clnet;
using namespace clnet::exec;
using clnet::test::leaf;
using clnet::test::PlanOracle;

namespace {

using Random = std::minstd_rand;
std::size_t below(Random& random, std::size_t count) { return static_cast<std::size_t>(random()) % count; }

/// A graph of some operations with views, values that are read several times, results in the middle, and values made of leaves
/// only.
std::vector<Tensor> random_graph(Random& random) {
  std::vector<Tensor> pool{leaf({4, 6}), leaf({4, 6}), leaf({6}), leaf({6, 6}), leaf({1, 6})};
  std::vector<Tensor> matrices{pool[0], pool[1]};
  const auto any = [&] { return matrices[below(random, matrices.size())]; };
  for (int i = 0; i < 14; ++i) {
    const Tensor x = any(), y = any();
    switch (below(random, 14)) {
      case 0: matrices.push_back(x + y); break;
      case 1: matrices.push_back(matmul(x, pool[3])); break;
      case 2: matrices.push_back(softmax(x, 1)); break;
      case 3: matrices.push_back(x - slice(y, 0, 0, 1)); break;
      case 4: matrices.push_back(concat({slice(x, 0, 0, 2), slice(y, 0, 2, 4)}, 0)); break;
      case 5: matrices.push_back(reshape(transpose(reshape(x, {6, 4}), 0, 1), {4, 6})); break;
      case 6: matrices.push_back(layer_norm(x, 1, pool[2], pool[2])); break;
      case 7: matrices.push_back(x * (exp(pool[2]) + pool[4])); break;
      case 8: matrices.push_back(cast(cast(relu(x), Dtype::f16), Dtype::f32)); break;
      case 9: matrices.push_back(x - mean(y, {1}, true)); break;
      case 10: matrices.push_back(matmul(x, matmul(transpose(y, 0, 1), x))); break;
      case 11: matrices.push_back(tanh(x) * y); break;
      case 12: matrices.push_back(x / (1.0 + sum(square(x), {0}, true))); break;
      default: matrices.push_back(matmul(sin(x), pool[3] * 2.0)); break;
    }
  }
  std::vector<Tensor> wanted{matrices.back(), sum(any()), slice(any() * 3.0, 0, 1, 3)};
  if (below(random, 2)) wanted.push_back(any());
  std::erase_if(wanted, [](const Tensor& t) { return value_of(t) != nullptr; });
  return wanted;
}

/// A convolution net in inference: weights in panels, folded normalisations.
std::vector<Tensor> network() {
  const Tensor x = leaf({1, 2, 6, 6}), scale = leaf({3}), shift = leaf({3}), mean = leaf({3}), variance = leaf({3});
  const auto normalized = [&](const Tensor& y) {
    const auto channel = [](const Tensor& t) { return reshape(t, {1, 3, 1, 1}); };
    return (y - channel(mean)) * channel(scale / sqrt(variance + 1e-5)) + channel(shift);
  };
  Tensor y = relu(normalized(conv2d(x, leaf({3, 2, 3, 3}), {}, {.padding = 1})));
  y = relu(normalized(conv2d(y, leaf({3, 3, 3, 3}), {}, {.padding = 1})) + y);
  y = conv2d(y, leaf({2, 3, 1, 1}), {});
  return {softmax(matmul(reshape(y, {1, 72}), leaf({72, 5})), 1), y};
}

/// A placed plan and two runs of it, on other leaves: the second one finds the prepacked values of the first, or some of its own.
struct Planned {
  Recording recording;
  std::vector<ValueId> keep;
  Placement placement;
  bool same_leaves = false;

  Planned(const std::vector<Tensor>& wanted, bool cpu, bool same) : same_leaves(same) {
    DeviceInfo device;
    device.compute_units = 4;
    device.max_work_group_size = 256;
    device.native_float_width = cpu ? 8 : 1;
    device.prefers_vector_kernels = cpu;
    auto lowered = lower(Subgraph(collect(wanted)), device);
    recording = std::move(lowered.recording);
    keep = std::move(lowered.results);
    placement = place(recording, keep, {});
  }

  std::uint64_t source(ValueId leaf, int run) const {
    return static_cast<std::uint64_t>((same_leaves ? 1 : run + 1) * 100000 + leaf);
  }

  std::vector<RunPlace> places(int run) const {
    std::vector<RunPlace> result(placement.homes.size());
    for (std::size_t id = 0; id < result.size(); ++id) {
      const auto value = static_cast<ValueId>(id);
      const auto bytes = static_cast<std::int64_t>(stored_bytes(recording.value(value).spec));
      switch (placement.homes[id]) {
        case Home::nowhere: break;
        case Home::leaf:
          if (placement.needs_buffer[id]) result[id] = {source(value, run), 0, bytes};
          break;
        case Home::arena: {
          const auto& at = placement.places[id];
          result[id] = {10 + at.segment, static_cast<std::int64_t>(at.offset),
                        static_cast<std::int64_t>(placement.layout.segments[at.segment])};
          break;
        }
        case Home::per_run: result[id] = {static_cast<std::uint64_t>((run + 1) * 10000) + id, 0, bytes}; break;
        case Home::prepacked:
          result[id] = {static_cast<std::uint64_t>((same_leaves ? 1 : run + 1) * 1000000) + id, 0, bytes};
          break;
      }
    }
    return result;
  }

  RunView run(int number) const {
    std::vector<RunPrepack> prepacks;
    for (const auto& prepack : placement.prepacks) {
      RunPrepack made;
      made.there = same_leaves && number > 0;
      made.kept = true;
      for (auto leaf : prepack.leaves) made.sources.push_back(source(leaf, number));
      made.made_from = made.sources;
      prepacks.push_back(std::move(made));
    }
    return view(recording, placement, keep, places(number), std::move(prepacks));
  }
};

RunArgument& any_argument(RunView& run, Random& random) {
  for (;;) {
    auto& command = run.commands[below(random, run.commands.size())];
    if (!command.arguments.empty()) return command.arguments[below(random, command.arguments.size())];
  }
}

/// The root values in the arena.
std::vector<std::size_t> movable(const Planned& plan) {
  std::vector<std::size_t> result;
  for (std::size_t id = 0; id < plan.placement.homes.size(); ++id)
    if (plan.placement.homes[id] == Home::arena) result.push_back(id);
  return result;
}

RunView replaced(const RunView& run, const Planned& plan, std::vector<RunPlace> places) {
  return view(plan.recording, plan.placement, plan.keep, std::move(places), run.prepacks);
}

/// One change of the second run.
RunView mutated(const Planned& plan, const RunView& run, Random& random) {
  auto result = run;
  const auto roots = movable(plan);
  switch (below(random, 9)) {
    case 0: {  // an argument's offset
      auto& argument = any_argument(result, random);
      argument.address += argument.element * (static_cast<std::int64_t>(below(random, 64)) - 32);
      break;
    }
    case 1: {  // an argument's range and place
      auto& argument = any_argument(result, random);
      argument.address += 128 * (static_cast<std::int64_t>(below(random, 4)) - 2);
      break;
    }
    case 2: {  // an in-place grant: an output of a launch over one of its inputs
      const auto& command = run.commands[below(random, run.commands.size())];
      for (const auto& out : command.arguments)
        for (const auto& in : command.arguments)
          if (out.writes && !in.writes && below(random, 2)) {
            auto places = run.places;
            places[static_cast<std::size_t>(out.root)] = places[static_cast<std::size_t>(in.root)];
            return replaced(run, plan, std::move(places));
          }
      break;
    }
    case 3: {  // a lifetime: a value where another one lies that may still be alive
      if (roots.size() < 2) break;
      auto places = run.places;
      places[roots[below(random, roots.size())]] = places[roots[below(random, roots.size())]];
      return replaced(run, plan, std::move(places));
    }
    case 4: {  // the order
      const auto a = below(random, run.commands.size()), b = below(random, run.commands.size());
      std::swap(result.commands[a], result.commands[b]);
      break;
    }
    case 5: {  // a launch that is left out, as if what it makes were there
      result.commands[below(random, run.commands.size())].left_out = true;
      break;
    }
    case 6: {  // a prepacked value of other leaves
      if (run.prepacks.empty()) break;
      const auto which = below(random, run.prepacks.size());
      if (run.prepacks[which].there) break;
      auto prepacks = run.prepacks;
      prepacks[which].there = true;
      for (auto& id : prepacks[which].made_from) id -= 100000;
      auto places = run.places;
      for (auto id : plan.placement.prepacks[which].values) places[static_cast<std::size_t>(id)].buffer -= 1000000;
      return view(plan.recording, plan.placement, plan.keep, std::move(places), std::move(prepacks));
    }
    case 7: {  // an output that is meant to be another one, of as many bytes
      auto& argument = any_argument(result, random);
      const auto other = any_argument(result, random);
      if (!argument.writes || argument.end - argument.begin != other.end - other.begin) break;
      argument.root = other.root;
      argument.begin = other.begin;
      argument.end = other.end;
      argument.buffer = other.buffer;
      argument.address = other.address;
      break;
    }
    default: {  // an argument of another value
      auto& argument = any_argument(result, random);
      const auto& other = any_argument(result, random);
      argument.buffer = other.buffer;
      argument.address = other.address;
      break;
    }
  }
  return result;
}

/// The numbers of a run's results, of its leaves and of its prepacked values: whatever a later run, or a caller, finds.
std::vector<std::uint64_t> outcome(PlanOracle oracle, const Planned& plan, const RunView& original, const RunView& run) {
  oracle.run(run);
  std::vector<std::uint64_t> numbers;
  for (const auto& result : run.results) numbers.push_back(oracle.number(result));
  for (std::size_t id = 0; id < original.places.size(); ++id) {
    const auto home = plan.placement.homes[id];
    const auto& place = original.places[id];
    const auto value = static_cast<ValueId>(id);
    if ((home == Home::leaf || home == Home::prepacked) && place.buffer)
      numbers.push_back(oracle.number({value, 0, plan.recording.value(value).spec.bytes(), place.buffer, place.begin}));
  }
  return numbers;
}

}  // namespace

TEST_CASE("of random mutations of plans the verifier finds at least 99 % of those that change a result") {
  Random random(1), changes(2);
  constexpr int plans = 100, mutations_each = 100;
  int changed = 0, missed = 0, harmless = 0, refused = 0, prepacks = 0, grants = 0;
  for (int p = 0; p < plans; ++p) {
    const Planned plan(p % 5 == 0 ? network() : random_graph(random), p % 2 == 0, p % 3 == 0);
    prepacks += static_cast<int>(plan.placement.prepacks.size());
    grants += static_cast<int>(plan.placement.grants.size());
    const auto first = plan.run(0), second = plan.run(1);
    REQUIRE_NOTHROW(verify(first));
    REQUIRE_NOTHROW(verify(second));
    PlanOracle before;
    before.leaves(first);
    before.run(first);
    before.leaves(second);
    const auto right = outcome(before, plan, second, second);
    // The plan itself computes what its launches mean.
    const auto meant = PlanOracle::meant(second);
    REQUIRE(std::equal(meant.begin(), meant.end(), right.begin()));
    for (int m = 0; m < mutations_each; ++m) {
      const auto run = mutated(plan, second, changes);
      bool found = false;
      try {
        verify(run);
      } catch (const Error&) {
        found = true;
      }
      // A prepacked value may lie elsewhere and be right: only what the caller gets is compared then.
      const bool same = outcome(before, plan, second, run) == right;
      same ? (found ? ++refused : ++harmless) : (found ? ++changed : (++changed, ++missed));
    }
  }
  const auto share = 100.0 * (changed - missed) / changed;
  std::printf(
      "%d mutations of %d plans with %d in-place grants and %d prepacks: %d changed a result, %d of these (%.2f %%) were "
      "found; %d harmless, %d refused without harm\n",
      plans * mutations_each, plans, grants, prepacks, changed, changed - missed, share, harmless, refused);
  CHECK(changed > plans * mutations_each / 3);
  CHECK(prepacks > plans / 4);
  CHECK(grants > plans / 4);
  CHECK(share >= 99);
}
