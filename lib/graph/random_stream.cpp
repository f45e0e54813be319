#include "lib/graph/random_stream.h"

#include <mutex>
#include <utility>

#include "lib/base/leave_scope.h"

namespace clnet {

namespace {

std::mutex generator_mutex;
RandomPosition generator;

thread_local RandomStream* innermost_stream = nullptr;

/// SplitMix64's output function. Replica 0 has the seed itself.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t replica) {
  if (replica == 0) return seed;
  std::uint64_t x = seed + replica * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

RandomStream::RandomStream(const RandomPosition& start, const Part& part)
    : position_(start), part_(part), outer_(std::exchange(innermost_stream, this)) {}
RandomStream::~RandomStream() { leave_scope(innermost_stream, this, &RandomStream::outer_); }

const RandomStream* RandomStream::now() { return innermost_stream; }

RandomPosition random_position() {
  if (innermost_stream) return innermost_stream->position();
  const std::lock_guard lock(generator_mutex);
  return generator;
}

void set_random_position(const RandomPosition& position) {
  if (innermost_stream) {
    innermost_stream->position_ = position;
    return;
  }
  const std::lock_guard lock(generator_mutex);
  generator = position;
}

RandomPosition take_random_position() {
  if (innermost_stream) {
    auto& position = innermost_stream->position_;
    return {position.seed, position.offset++};
  }
  const std::lock_guard lock(generator_mutex);
  return {generator.seed, generator.offset++};
}

RandomDraw draw_at(const RandomPosition& position, const Shape& shape, RandomRows rows) {
  const auto* stream = innermost_stream;
  if (!stream) return {position};
  const auto& part = stream->part();
  if (rows == RandomRows::own || !stream->has_rows(shape)) return {{seed_of(position.seed, part.replica), position.offset}};
  const auto each = part.rows == 0 ? 0 : shape.numel() / part.rows;
  return {position, static_cast<std::uint64_t>(part.first_row) * static_cast<std::uint64_t>(each)};
}

}  // namespace clnet
