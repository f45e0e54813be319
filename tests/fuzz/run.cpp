#include "tests/fuzz/run.h"

#include <fmt/format.h>

#include <exception>

#include "clnet/error.h"
#include "lib/exec/statistics.h"
#include "tests/fuzz/judge.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/rounding.h"

namespace clnet::fuzz {

namespace {

using Storage = std::vector<std::vector<std::byte>>;

Storage read(const std::vector<Tensor>& tensors) {
  Storage result;
  for (const auto& tensor : tensors) {
    result.emplace_back(static_cast<std::size_t>(tensor.spec().bytes()));
    tensor.to_bytes(result.back().data(), result.back().size());
  }
  return result;
}

std::uint64_t digest_of(const Storage& storage) {
  std::uint64_t digest = 0;
  for (const auto& bytes : storage)
    for (auto byte : bytes) digest = mix(digest, static_cast<std::uint64_t>(byte));
  return digest;
}

/// Whether anything has written into a leaf.
std::optional<std::string> check_leaves(const Built& built) {
  for (const auto& [leaf, values] : built.leaves)
    if (read({leaf})[0] != to_storage(values, leaf.dtype()))
      return fmt::format("a leaf {} was written over", to_string(leaf.spec()));
  return std::nullopt;
}

Outcome run_rounds(const Program& program, const RunOptions& options, Coverage* coverage) {
  Outcome outcome;
  std::vector<Built> rounds;
  std::vector<Storage> results;
  for (int round = 0; round < options.rounds && !outcome.fault; ++round) {
    rounds.push_back(build(program, static_cast<std::uint64_t>(round)));
    results.push_back(read(rounds.back().results()));
    outcome.digest = mix(outcome.digest, digest_of(results.back()));
    if (!options.judges) continue;
    auto verdict = judge(rounds.back(), results.back());
    outcome.elements += verdict.elements;
    outcome.judged += verdict.judged;
    if (verdict.fault) outcome.fault = (round == 0 ? "" : fmt::format("with new leaves (round {}): ", round)) + *verdict.fault;
    if (!outcome.fault) outcome.fault = check_leaves(rounds.back());
  }
  if (options.judges && !outcome.fault) {
    // The first round's leaves once more: whatever was kept of them is right, too. Under a limit of memory other plans may be
    // made.
    const auto same = build(program, 0, &rounds[0]);
    const auto storage = read(same.results());
    if (storage != results[0]) {
      outcome.fault = options.memory ? judge(same, storage).fault : "the same leaves again give other bits";
      if (outcome.fault) outcome.fault = "with the same leaves: " + *outcome.fault;
    }
  }
  if (coverage && !rounds.empty()) coverage->add(rounds[0].wanted);
  if (options.gradients && !outcome.fault) outcome.fault = check_gradients(program, rounds[0]);
  // What was returned earlier belongs to the caller, whatever is evaluated later.
  for (std::size_t round = 0; options.judges && round < rounds.size() && !outcome.fault; ++round)
    if (read(rounds[round].results()) != results[round])
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

/// What the program takes without a limit: leaves, results and the plans' memory.
std::size_t bytes_needed(const Program& program) {
  auto device = Device::current();
  device.finish();
  device.trim();
  const auto before = device.memory().in_use;
  const auto built = build(program, 0);
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

/// Under limits from just below what the program takes to half of it.
Outcome run_limited(const Program& program, RunOptions options) {
  options.gradients = false;
  options.rounds = 1;  // results of earlier rounds would count
  Outcome outcome;
  const auto needed = bytes_needed(program);
  for (double share : {0.97, 0.75, 0.5}) {
    const Limit limit(static_cast<std::size_t>(share * static_cast<double>(needed)));
    const auto before = exec::statistics().repeated;
    const auto limited = run_guarded(program, options, nullptr);
    outcome.elements += limited.elements;
    outcome.judged += limited.judged;
    outcome.fault = limited.fault;
    outcome.refused = limited.refused;
    if (outcome.fault || outcome.refused) break;
    outcome.repeated = outcome.repeated || exec::statistics().repeated > before;
    outcome.fitted = true;
  }
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
