#include "lib/dist/wire.h"

#include <algorithm>
#include <array>

#include "clnet/error.h"

namespace clnet::dist {

namespace {

using ErrorText = std::array<char, mpi_error_size>;

/// Texts of MPI have several lines.
Error in_one_line(ErrorText& text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return Error(text.data());
}

}  // namespace

MpiRequest Wire::send(MpiChannel channel, std::span<const std::byte> data, int rank, int tag) const {
  MpiRequest request = 0;
  ErrorText error{};
  if (module_.send(channel, data.data(), static_cast<int>(data.size()), rank, tag, &request, error.data()))
    throw in_one_line(error);
  return request;
}

MpiRequest Wire::receive(MpiChannel channel, std::span<std::byte> data, int rank, int tag) const {
  MpiRequest request = 0;
  ErrorText error{};
  if (module_.receive(channel, data.data(), static_cast<int>(data.size()), rank, tag, &request, error.data()))
    throw in_one_line(error);
  return request;
}

std::optional<std::size_t> Wire::test(MpiRequest& request) const {
  int done = 0, bytes = 0;
  ErrorText error{};
  if (module_.test(&request, &done, &bytes, error.data())) throw in_one_line(error);
  if (!done) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

}  // namespace clnet::dist
