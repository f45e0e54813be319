#include "tests/fuzz/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>

#include "clnet/error.h"
#include "lib/exec/statistics.h"
#include "lib/graph/node.h"
#include "tests/fuzz/judge.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/rounding.h"

namespace clnet::fuzz {

namespace {

std::uint64_t digest_of(const Storage& storage) {
  std::uint64_t digest = 0;
  for (const auto& bytes : storage)
    for (auto byte : bytes) digest = mix(digest, static_cast<std::uint64_t>(byte));
  return digest;
}

/// Whether anything has written into a leaf.
std::optional<std::string> check_leaves(const Built& built) {
  for (const auto& [leaf, values] : built.leaves)
    if (read_storage({leaf})[0] != to_storage(values, leaf.dtype()))
      return fmt::format("a leaf {} was written over", to_string(leaf.spec()));
  return std::nullopt;
}

Outcome run_rounds(const Program& program, const RunOptions& options, Coverage* coverage) {
  Outcome outcome;
  std::vector<Built> rounds;
  std::vector<Storage> results;
  for (int round = 0; round < options.rounds && !outcome.fault; ++round) {
    rounds.push_back(build(program, static_cast<std::uint64_t>(round)));
    results.push_back(read_storage(rounds.back().results()));
    outcome.digest = mix(outcome.digest, digest_of(results.back()));
    if (!options.judges) continue;
    auto verdict = judge(rounds.back(), results.back());
    outcome.elements += verdict.elements;
    outcome.judged += verdict.judged;
    if (verdict.fault) outcome.fault = (round == 0 ? "" : fmt::format("with new leaves (round {}): ", round)) + *verdict.fault;
    if (!outcome.fault) outcome.fault = check_leaves(rounds.back());
  }
  if ((options.judges || options.memory) && !outcome.fault) {
    // The first round's leaves once more: whatever was kept of them is right, too. Under a limit of memory other plans may be
    // made.
    const auto same = build(program, 0, &rounds[0]);
    const auto storage = read_storage(same.results());
    if (options.judges && storage != results[0]) {
      outcome.fault = options.memory ? judge(same, storage).fault : "the same leaves again give other bits";
      if (outcome.fault) outcome.fault = "with the same leaves: " + *outcome.fault;
    }
  }
  if (coverage && !rounds.empty()) coverage->add(rounds[0].wanted);
  if (options.gradients && !outcome.fault) outcome.fault = check_gradients(program, rounds[0]);
  // What was returned earlier belongs to the caller, whatever is evaluated later.
  for (std::size_t round = 0; options.judges && round < rounds.size() && !outcome.fault; ++round)
    if (read_storage(rounds[round].results()) != results[round])
      outcome.fault = fmt::format("results of round {} changed afterwards", round);
  return outcome;
}

/// A limit of so much memory above what is in use, for a while.
class Limit {
 public:
  explicit Limit(std::size_t more) : device_(Device::current()) {
    device_.finish();
    device_.trim();
    device_.set_memory_limit(device_.memory().in_use + more);
  }
  ~Limit() { device_.set_memory_limit(0); }

 private:
  Device device_;
};

/// What the program takes without a limit, carried out twice with the same leaves: these, results and the plans' memory.
std::size_t bytes_needed(const Program& program) {
  auto device = Device::current();
  device.finish();
  device.trim();
  const auto before = device.memory().in_use;
  const auto built = build(program, 0), again = build(program, 0, &built);
  device.finish();
  return device.memory().in_use - before;
}

Outcome run_guarded(const Program& program, const RunOptions& options, Coverage* coverage) {
  Outcome outcome;
  try {
    return run_rounds(program, options, coverage);
  } catch (const DeviceError& error) {
    outcome.refused = options.memory && std::string_view(error.what()).find("out of memory") != std::string_view::npos;
    if (!outcome.refused) outcome.fault = fmt::format("throws: {}", error.what());
  } catch (const std::exception& error) {
    outcome.fault = fmt::format("throws: {}", error.what());
  }
  return outcome;
}

/// What no plan of the program can do without: its leaves, and what the largest of its operations reads and writes.
std::size_t least_bytes(const Built& built) {
  std::size_t leaves = 0, largest = 0;
  for (const auto& [leaf, values] : built.leaves) leaves += static_cast<std::size_t>(leaf.spec().bytes());
  std::set<const Node*> known;
  std::vector<const Node*> open;
  const auto visit = [&](const Tensor& tensor) {
    if (known.insert(node_of(tensor).get()).second) open.push_back(node_of(tensor).get());
  };
  for (const auto& tensor : built.wanted) visit(tensor);
  while (!open.empty()) {
    const auto* node = open.back();
    open.pop_back();
    std::size_t bytes = 0;
    for (const auto& spec : node->outputs) bytes += static_cast<std::size_t>(spec.bytes());
    for (const auto& input : node->inputs) {
      // A leaf is counted already.
      if (node_of(input)->op) bytes += static_cast<std::size_t>(input.spec().bytes());
      visit(input);
    }
    if (node->op) largest = std::max(largest, bytes);
  }
  return leaves + largest;
}

/// Looks between what the program cannot do without and what it takes for the least memory that it runs with: there it runs by
/// computing values twice, if that helps it at all. Each limit that is too low must give one clear error and harm nothing.
Outcome run_limited(const Program& program, RunOptions options) {
  options.gradients = false;
  options.rounds = 1;  // results of earlier rounds would count
  auto fits = bytes_needed(program), refused = std::min(fits, least_bytes(build(program, 0)));
  auto quick = options;
  quick.judges = false;
  const auto run_with = [&](std::size_t bytes, const RunOptions& how) {
    const Limit limit(bytes);
    const auto before = exec::statistics().repeated;
    auto outcome = run_guarded(program, how, nullptr);
    outcome.repeated = exec::statistics().repeated > before;
    return outcome;
  };
  Outcome outcome;
  constexpr int looks = 8;  // to a 256th of the way
  for (int look = 0; look < looks && fits - refused > 1; ++look) {
    const auto between = refused + (fits - refused) / 2;
    const auto tried = run_with(between, quick);
    if (tried.fault) return tried;
    (tried.refused ? refused : fits) = between;
    outcome.fitted = outcome.fitted || !tried.refused;
  }
  if (!outcome.fitted) {
    outcome.refused = true;
    return outcome;
  }
  outcome = run_with(fits, options);
  if (outcome.refused) outcome.fault = fmt::format("{} bytes are too little, and were enough before", fits);
  outcome.fitted = !outcome.refused;
  return outcome;
}

}  // namespace

Outcome run(const Program& program, const RunOptions& options, Coverage* coverage) {
  auto outcome = run_guarded(program, options, coverage);
  if (!options.memory || outcome.fault) return outcome;
  if (outcome.refused) {
    outcome.fault = "there is no memory without a limit";
    return outcome;
  }
  const auto limited = run_limited(program, options);
  outcome.elements += limited.elements;
  outcome.judged += limited.judged;
  outcome.fitted = limited.fitted;
  outcome.refused = limited.refused;
  outcome.repeated = limited.repeated;
  outcome.fault = limited.fault;
  if (outcome.fault) return outcome;
  auto after = options;
  after.gradients = false;
  after.rounds = 1;
  const auto again = run_guarded(program, after, nullptr);
  if (again.fault) outcome.fault = "after limits were lifted: " + *again.fault;
  if (again.refused) outcome.fault = "there is no memory after limits were lifted";
  return outcome;
}

}  // namespace clnet::fuzz
