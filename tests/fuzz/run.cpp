#include "tests/fuzz/run.h"

#include <fmt/format.h>

#include <exception>

#include "clnet/error.h"
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

/// The device's memory limit, for a while.
class Limit {
 public:
  explicit Limit(std::int64_t more) : device_(Device::current()) {
    device_.trim();
    device_.set_memory_limit(device_.memory().in_use + static_cast<std::size_t>(more));
  }
  ~Limit() { device_.set_memory_limit(0); }

 private:
  Device device_;
};

/// What a caller holds anyway: leaves and wanted values.
std::int64_t bytes_held(const Program& program) {
  std::int64_t bytes = 0;
  for (const auto& step : program.steps)
    if (step.is_leaf()) bytes += step.leaf.spec.bytes();
  for (const auto& evaluation : program.evaluations)
    for (const auto& ref : evaluation.values) bytes += program.spec(ref).bytes();
  return bytes;
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

}  // namespace

Outcome run(const Program& program, const RunOptions& options, Coverage* coverage) {
  bool refused = false;
  for (double share : {1.5, 3.0, 6.0}) {
    if (!options.memory) break;
    const Limit limit(static_cast<std::int64_t>(share * static_cast<double>(bytes_held(program))));
    const auto outcome = run_guarded(program, options, nullptr);
    if (outcome.fault) return outcome;
    refused = refused || outcome.refused;
  }
  auto outcome = run_guarded(program, options, coverage);
  if (options.memory && outcome.refused) outcome.fault = "there is no memory left after limits were lifted";
  outcome.refused = refused;
  return outcome;
}

}  // namespace clnet::fuzz
