// One collective, step by step: messages in host memory, none of which is waited for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "clnet/dtype.h"
#include "lib/dist/members.h"
#include "lib/dist/wire.h"

namespace clnet::dist {

/// Tags of messages that belong to one group.
inline constexpr int tags_of_group = 3;

enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, send, recv };

/// An array of a collective. One that is added over ranks may give its sums another place.
struct Array {
  std::size_t count = 0;          ///< elements: where each rank brings or gets some of the array, those of one rank
  const std::byte* in = nullptr;  ///< not of broadcast and recv
  std::byte* out = nullptr;       ///< not of send
};

/// What a rank wants done. The arrays stay where they are until then: `owner` or the caller keeps them.
struct Operation {
  Kind kind = Kind::all_reduce;
  std::shared_ptr<const Members> group;
  Dtype dtype = Dtype::f32;
  std::vector<Array> arrays;  ///< one, of all_reduce any number
  int peer = 0;               ///< in the group: the root of a broadcast, the other rank of send and recv
  std::shared_ptr<const void> owner = nullptr;
  bool beside = false;  ///< an all_reduce in a turn of its own: it does not wait for the group's other collectives

  /// As "all_reduce of 100 f32".
  std::string text() const;
  /// Operations with the same are done one after the other, on all ranks in the same order.
  std::tuple<int, Kind, int> turn() const;
  /// Of its messages. Each of a group's turns of all ranks has one, and what goes between two ranks another.
  int tag() const;
};

/// An operation that is being done. Arrays of several ranks are cut into blocks. A block's pieces go to the ranks that add them
/// (scatter), and sums or parts go to all (gather), while the next block's pieces are on their way.
class Collective {
 public:
  explicit Collective(Operation operation);

  /// Goes on as far as it can. True when all is done. Throws Error where another rank sent something else.
  bool advance(const Wire& wire);
  /// A rank of the job whose message it waits for, or that does not take one.
  std::optional<int> waits_for() const;
  /// Whether advance() has found a message that was done since this was asked.
  bool moved() { return std::exchange(moved_, false); }
  const Operation& operation() const { return operation_; }

 private:
  struct Transfer {
    MpiRequest request;
    std::size_t bytes;
    int rank;  ///< of the job
    bool receives;
  };
  using Transfers = std::vector<Transfer>;

  void begin_scatter(const Wire& wire);
  void end_scatter();
  void begin_gather(const Wire& wire);
  void send(const Wire& wire, Transfers& transfers, int to, std::span<const std::byte> data) const;
  void receive(const Wire& wire, Transfers& transfers, int from, std::span<std::byte> data) const;
  bool settled(const Wire& wire, Transfers& transfers);
  /// Of the block's elements those that a rank adds or brings: the first and the number.
  std::pair<std::size_t, std::size_t> segment(int rank) const;
  std::size_t count() const { return operation_.arrays[array_].count; }
  std::span<std::byte> out(std::size_t first, std::size_t elements) const;
  std::span<const std::byte> in(std::size_t first, std::size_t elements) const;

  Operation operation_;
  std::size_t size_;        ///< bytes of an element
  std::size_t block_;       ///< elements of a block
  std::size_t array_ = 0;   ///< of the operation: the one that this block is cut from
  std::size_t begin_ = 0;   ///< the first element of this block
  std::size_t length_ = 0;  ///< the elements of this block
  bool scattering_ = false, moved_ = false;
  Transfers scatter_, gather_;
  std::vector<std::byte> pieces_;  ///< of other ranks, to be added
};

}  // namespace clnet::dist
