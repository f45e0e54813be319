// Whether a device's results are those that the graph means.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/program.h"

namespace clnet::fuzz {

/// What a round of a program was judged by.
struct Verdict {
  std::optional<std::string> fault;       ///< which value is wrong, and by how much
  std::size_t wanted = 0;                 ///< its place in Built::results()
  std::int64_t elements = 0, judged = 0;  ///< those that are numbers and well conditioned enough to tell
};

/// `results`: the storage of Built::results(), in order. An element is wrong when it is farther from the double-precision value
/// than a clear multiple of what rounding errors of the device's size make of it: the largest distance among runs of the
/// interpreter with such errors in every operation.
Verdict judge(const Built& built, const Storage& results);

/// The same for several results of one graph. `beside`: another graph that shall compute the same, and computed the results; its
/// roundings are excused, too, and `absolute` roundings of 1 in each of its
/// operations.
class Judge {
 public:
  explicit Judge(const Built& built, const Built* beside = nullptr, double absolute = 2);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;
  Verdict operator()(const Storage& results);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// What Built::results() are by the interpreter: nothing is computed on the device.
Storage meant(const Built& built);

/// Compares the gradients in a program with differences of the loss along a random direction, all by the interpreter. Where the
/// loss is not smooth enough for two distances to agree, nothing is said.
std::optional<std::string> check_gradients(const Program& program, const Built& built);

}  // namespace clnet::fuzz
