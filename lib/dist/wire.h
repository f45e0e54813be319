// Messages of MPI, with errors as exceptions.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "lib/dist/mpi/module.h"

namespace clnet::dist {

using Clock = std::chrono::steady_clock;

/// Used by the engine's thread alone. Ranks are those of the job.
class Wire {
 public:
  explicit Wire(const MpiModule& module) : module_(module) {}

  /// At most so many bytes make a message: its length is an int.
  static constexpr std::size_t largest_message = std::size_t{1} << 30;

  MpiRequest send(MpiChannel channel, std::span<const std::byte> data, int rank, int tag) const;
  MpiRequest receive(MpiChannel channel, std::span<std::byte> data, int rank, int tag) const;
  /// The bytes that came, or of a send something, once it is done.
  std::optional<std::size_t> test(MpiRequest& request) const;

 private:
  const MpiModule& module_;
};

}  // namespace clnet::dist
