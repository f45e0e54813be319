#include "lib/dist/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "clnet/error.h"
#include "lib/dist/sum.h"

namespace clnet::dist {

namespace {

/// Large enough that the time for a message is that of its bytes, and small enough that pieces of other ranks stay in a cache.
constexpr std::size_t block_bytes = 4 << 20;
/// Messages between two ranks are not cut for their sums.
constexpr std::size_t message_bytes = 64 << 20;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce: return "all_reduce";
    case Kind::all_gather: return "all_gather";
    case Kind::reduce_scatter: return "reduce_scatter";
    case Kind::broadcast: return "broadcast";
    case Kind::send: return "send";
    case Kind::recv: return "recv";
  }
  return "";
}

bool is_between_two(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

std::size_t block_of(const Operation& operation) {
  const auto size = size_of(operation.dtype);
  if (is_between_two(operation.kind)) return message_bytes / size;
  const auto ranks = static_cast<std::size_t>(operation.group->size());
  const bool of_each = operation.kind == Kind::reduce_scatter || operation.kind == Kind::all_gather;
  return std::max<std::size_t>(1, block_bytes / size / (of_each ? ranks : 1));
}

}  // namespace

std::string Operation::text() const {
  std::size_t count = 0;
  for (const auto& array : arrays) count += array.count;
  if (is_between_two(kind))
    return fmt::format("{} of {} {} {} rank {}", name_of(kind), count, to_string(dtype), kind == Kind::send ? "to" : "from",
                       peer);
  return fmt::format("{} of {} {}", name_of(kind), count, to_string(dtype));
}

std::tuple<int, Kind, int> Operation::turn() const {
  return is_between_two(kind) ? std::tuple(group->id, kind, peer) : std::tuple(group->id, Kind::all_reduce, beside ? 1 : 0);
}

int Operation::tag() const { return tags_of_group * group->id + (is_between_two(kind) ? 1 : beside ? 2 : 0); }

Collective::Collective(Operation operation)
    : operation_(std::move(operation)), size_(size_of(operation_.dtype)), block_(block_of(operation_)) {}

bool Collective::advance(const Wire& wire) {
  for (;;) {
    const bool scattered = settled(wire, scatter_), gathered = settled(wire, gather_);
    if (!scattered || !gathered) return false;
    if (scattering_) {
      end_scatter();
      begin_gather(wire);
      begin_ += length_;
      scattering_ = false;
    }
    while (begin_ >= count() && array_ + 1 < operation_.arrays.size()) {
      ++array_;
      begin_ = 0;
    }
    if (begin_ >= count() && gather_.empty()) return true;
    if (begin_ < count()) {
      length_ = std::min(block_, count() - begin_);
      begin_scatter(wire);
      scattering_ = true;
    }
  }
}

std::optional<int> Collective::waits_for() const {
  for (const auto* transfers : {&scatter_, &gather_})
    if (!transfers->empty()) return transfers->front().rank;
  return std::nullopt;
}

void Collective::begin_scatter(const Wire& wire) {
  const auto& group = *operation_.group;
  const int ranks = group.size(), own = group.rank;
  switch (operation_.kind) {
    case Kind::send: return send(wire, scatter_, operation_.peer, in(begin_, length_));
    case Kind::recv: return receive(wire, scatter_, operation_.peer, out(begin_, length_));
    case Kind::all_gather: return;
    case Kind::broadcast: {
      if (own != operation_.peer) {
        const auto [first, elements] = segment(own);
        return receive(wire, scatter_, operation_.peer, out(begin_ + first, elements));
      }
      for (int other = 0; other < ranks; ++other) {
        const auto [first, elements] = segment(other);
        if (other != own) send(wire, scatter_, other, out(begin_ + first, elements));
      }
      return;
    }
    case Kind::all_reduce:
    case Kind::reduce_scatter: break;
  }
  const bool whole = operation_.kind == Kind::all_reduce;
  const auto piece = (whole ? segment(own).second : length_) * size_;
  pieces_.resize(piece * static_cast<std::size_t>(ranks));
  // Each rank begins with another one.
  for (int step = 1; step < ranks; ++step) {
    const int from = (own + ranks - step) % ranks;
    receive(wire, scatter_, from, std::span(pieces_).subspan(static_cast<std::size_t>(from) * piece, piece));
  }
  for (int step = 1; step < ranks; ++step) {
    const int to = (own + step) % ranks;
    const auto [first, elements] = segment(to);
    send(wire, scatter_, to, whole ? in(begin_ + first, elements) : in(static_cast<std::size_t>(to) * count() + begin_, length_));
  }
}

void Collective::end_scatter() {
  const auto& group = *operation_.group;
  const bool whole = operation_.kind == Kind::all_reduce;
  if (!whole && operation_.kind != Kind::reduce_scatter) return;
  const auto own = static_cast<std::size_t>(group.rank);
  const auto [first, elements] = whole ? segment(group.rank) : std::pair(std::size_t{0}, length_);
  const auto piece = elements * size_;
  std::vector<const std::byte*> parts;
  for (std::size_t rank = 0; rank < group.ranks.size(); ++rank) parts.push_back(pieces_.data() + rank * piece);
  parts[own] = in(whole ? begin_ + first : own * count() + begin_, elements).data();
  add_parts(operation_.dtype, parts, out(begin_ + first, elements).data(), elements);
}

void Collective::begin_gather(const Wire& wire) {
  const auto& group = *operation_.group;
  const int ranks = group.size(), own = group.rank;
  if (is_between_two(operation_.kind) || operation_.kind == Kind::reduce_scatter) return;
  const bool parts = operation_.kind == Kind::all_gather;
  // The elements that a rank brings.
  const auto of = [&](int rank) {
    if (parts) return out(static_cast<std::size_t>(rank) * count() + begin_, length_);
    const auto [first, elements] = segment(rank);
    return out(begin_ + first, elements);
  };
  if (parts) std::memmove(of(own).data(), in(begin_, length_).data(), length_ * size_);
  // The root of a broadcast has all of it.
  const int has_all = operation_.kind == Kind::broadcast ? operation_.peer : -1;
  for (int step = 1; step < ranks && own != has_all; ++step) {
    const int from = (own + ranks - step) % ranks;
    receive(wire, gather_, from, of(from));
  }
  for (int step = 1; step < ranks; ++step) {
    const int to = (own + step) % ranks;
    if (to != has_all) send(wire, gather_, to, of(own));
  }
}

void Collective::send(const Wire& wire, Transfers& transfers, int to, std::span<const std::byte> data) const {
  if (data.empty()) return;
  const auto& group = *operation_.group;
  const int rank = group.ranks[static_cast<std::size_t>(to)], tag = operation_.tag();
  transfers.push_back({wire.send(data_channel, data, rank, tag), data.size(), rank, false});
}

void Collective::receive(const Wire& wire, Transfers& transfers, int from, std::span<std::byte> data) const {
  if (data.empty()) return;
  const auto& group = *operation_.group;
  const int rank = group.ranks[static_cast<std::size_t>(from)], tag = operation_.tag();
  transfers.push_back({wire.receive(data_channel, data, rank, tag), data.size(), rank, true});
}

bool Collective::settled(const Wire& wire, Transfers& transfers) {
  std::erase_if(transfers, [&](Transfer& transfer) {
    std::optional<std::size_t> bytes;
    try {
      bytes = wire.test(transfer.request);
    } catch (const Error& error) {
      throw Error(fmt::format("{} {} bytes {} rank {}: {}", transfer.receives ? "receiving" : "sending", transfer.bytes,
                              transfer.receives ? "from" : "to", transfer.rank, error.what()));
    }
    if (!bytes) return false;
    if (transfer.receives && *bytes != transfer.bytes)
      throw Error(fmt::format("rank {} sent {} bytes where {} were expected: ranks call unlike collectives, or with unlike sizes",
                              transfer.rank, *bytes, transfer.bytes));
    return moved_ = true;
  });
  return transfers.empty();
}

std::pair<std::size_t, std::size_t> Collective::segment(int rank) const {
  const auto ranks = operation_.group->ranks.size(), at = static_cast<std::size_t>(rank);
  const auto first = length_ * at / ranks;
  return {first, length_ * (at + 1) / ranks - first};
}

std::span<std::byte> Collective::out(std::size_t first, std::size_t elements) const {
  return {operation_.arrays[array_].out + first * size_, elements * size_};
}

std::span<const std::byte> Collective::in(std::size_t first, std::size_t elements) const {
  return {operation_.arrays[array_].in + first * size_, elements * size_};
}

}  // namespace clnet::dist
