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
    if (read({leaf})[0] != to_storage(values, leaf.dtype())) return fmt::format("a leaf {} was written over", to_string(leaf.spec()));
  return std::nullopt;
}

Outcome run_rounds(const Program& program, const RunOptions& options, Coverage* coverage) {
  Outcome outcome;
  std::vector<Built> rounds;
  std::vector<Storage> results;
  for (int round = 0; round < options.rounds && !outcome.fault; ++round) {
    rounds.push_back(build(program, static_cast<std::uint64_t>(round)));
    results.push_back(read(rounds.back().wanted));
    outcome.digest = mix(outcome.digest, digest_of(results.back()));
    if (!options.judges) continue;
    auto verdict = judge(rounds.back(), results.back());
    outcome.elements += verdict.elements;
    outcome.judged += verdict.judged;
    if (verdict.fault) outcome.fault = (round == 0 ? "" : fmt::format("with new leaves (round {}): ", round)) + *verdict.fault;
    if (!outcome.fault) outcome.fault = check_leaves(rounds.back());
  }
  if (coverage && !rounds.empty()) coverage->add(rounds[0].wanted);
  if (options.gradients && !outcome.fault) outcome.fault = check_gradients(program, rounds[0]);
  // What was returned earlier belongs to the caller, whatever is evaluated later.
  for (std::size_t round = 0; options.judges && round < rounds.size() && !outcome.fault; ++round)
    if (read(rounds[round].wanted) != results[round]) outcome.fault = fmt::format("results of round {} changed afterwards", round);
  return outcome;
}

}  // namespace

Outcome run(const Program& program, const RunOptions& options, Coverage* coverage) {
  try {
    return run_rounds(program, options, coverage);
  } catch (const std::exception& error) {
    Outcome outcome;
    outcome.refused = options.may_refuse && std::string_view(error.what()).find("memory") != std::string_view::npos;
    if (!outcome.refused) outcome.fault = fmt::format("throws: {}", error.what());
    return outcome;
  }
}

}  // namespace clnet::fuzz
