#include "lib/optim/line_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace clnet::optim {

namespace {

/// Where the cubic through both points with their slopes is least, within bounds; their middle where it has no minimum.
double least_of_cubic(const Reached& a, const Reached& b, double low, double high) {
  const auto& [left, right] = a.distance <= b.distance ? std::pair<const Reached&, const Reached&>(a, b)
                                                       : std::pair<const Reached&, const Reached&>(b, a);
  const double bend = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.distance - right.distance);
  const double square = bend * bend - left.slope * right.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double root = std::sqrt(square);
  const double least =
      right.distance - (right.distance - left.distance) * (right.slope + root - bend) / (right.slope - left.slope + 2 * root);
  return std::isnan(least) ? (low + high) / 2 : std::clamp(least, low, high);
}

}  // namespace

Reached strong_wolfe(const std::function<Reached(double distance)>& go, const Reached& start, double distance, double largest,
                     const LineSearch& options) {
  // Losses are numbers of f32: no fall below their spacing is asked for. One that is no number is too high, too.
  const auto too_high = [&](const Reached& at) {
    return !(at.loss <= static_cast<float>(start.loss + options.sufficient * at.distance * start.slope));
  };
  const auto flat = [&](const Reached& at) { return std::abs(at.slope) <= -options.flatter * start.slope; };

  // Further and further, until a minimum lies between two points.
  Reached before = start, now = go(distance);
  std::int64_t made = 0;
  for (;; ++made) {
    if (made >= options.most) return now.loss < start.loss ? now : start;
    if (too_high(now) || (made > 1 && now.loss >= before.loss)) break;
    if (flat(now)) return now;
    if (now.slope >= 0) break;
    const double next = least_of_cubic(before, now, now.distance + 0.01 * (now.distance - before.distance), now.distance * 10);
    before = std::exchange(now, go(next));
  }

  // Between them.
  std::array<Reached, 2> ends{std::move(before), std::move(now)};
  const auto lower = [&] { return std::isnan(ends[0].loss) || ends[1].loss < ends[0].loss ? 1U : 0U; };
  auto best = lower();
  for (bool slow = false; made < options.most; ++made) {
    const double low = std::min(ends[0].distance, ends[1].distance), high = std::max(ends[0].distance, ends[1].distance);
    if ((high - low) * largest < options.tolerance) break;
    double next = least_of_cubic(ends[0], ends[1], low, high);
    // Twice in a row near an end, or at it: away from it.
    const double margin = 0.1 * (high - low);
    const bool near_end = std::min(high - next, next - low) < margin;
    if (near_end && (slow || next >= high || next <= low)) {
      next = std::abs(next - high) < std::abs(next - low) ? high - margin : low + margin;
      slow = false;
    } else {
      slow = near_end;
    }
    Reached at = go(next);
    auto& other = ends[1 - best];
    if (too_high(at) || at.loss >= ends[best].loss) {
      other = std::move(at);
      best = lower();
      continue;
    }
    if (flat(at)) return at;
    if (at.slope * (other.distance - ends[best].distance) >= 0) other = std::move(ends[best]);
    ends[best] = std::move(at);
  }
  return ends[best];
}

}  // namespace clnet::optim
