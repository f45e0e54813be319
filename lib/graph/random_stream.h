// Where a thread's random numbers come from: the process's generator, or a stream of its own while it computes rows of a batch.
#pragma once

#include <cstdint>
#include <optional>

#include "clnet/shape.h"

namespace clnet {

/// A seed, and the offset of the next tensor.
struct RandomPosition {
  std::uint64_t seed = 0, offset = 0;
};

/// The position of this thread's stream, else of the process's generator.
RandomPosition random_position();
void set_random_position(const RandomPosition& position);
/// The same; the next tensor gets another offset.
RandomPosition take_random_position();

/// What the numbers of one tensor are made from. Element i is number `first` + i of seed and offset.
struct RandomDraw {
  RandomPosition position;
  std::optional<std::uint64_t> first = std::nullopt;  ///< nothing: 0
};

/// While it lives, this thread draws as one of several replicas, each of which computes some rows of a batch. Replicas that build
/// the same graph from one position draw the same offsets, and so parts of the same tensors.
///
/// A tensor whose first extent is the number of rows is those rows of the whole batch's tensor. Any other one is the replica's
/// own, by another seed; the seed of replica 0 is the given one. An extent that equals the number of rows by chance counts as
/// rows.
class RandomStream {
 public:
  struct Part {
    std::int64_t first_row = 0, rows = 0;
    std::uint64_t replica = 0;
  };
  RandomStream(const RandomPosition& start, const Part& part);
  ~RandomStream();
  RandomStream(const RandomStream&) = delete;
  RandomStream& operator=(const RandomStream&) = delete;

  /// This thread's innermost one, or null.
  static const RandomStream* now();
  /// Of the next tensor.
  const RandomPosition& position() const { return position_; }
  const Part& part() const { return part_; }
  bool has_rows(const Shape& shape) const { return shape.rank() > 0 && shape[0] == part_.rows; }

 private:
  friend RandomPosition take_random_position();
  friend void set_random_position(const RandomPosition& position);

  RandomPosition position_;
  const Part part_;
  RandomStream* outer_;
};

/// Whether a tensor that has the batch as its first extent is part of a larger one.
enum class RandomRows : std::uint8_t { of_batch, own };

/// The draw of a tensor at this position, by this thread's stream.
RandomDraw draw_at(const RandomPosition& position, const Shape& shape, RandomRows rows = RandomRows::of_batch);

}  // namespace clnet
