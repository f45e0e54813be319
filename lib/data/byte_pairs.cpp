#include "lib/data/byte_pairs.h"

#include <cstddef>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "lib/data/text_units.h"

namespace clnet::data {
namespace {

using BytePair = std::pair<std::int32_t, std::int32_t>;

/// A piece of the text, as often as it is there.
struct CountedPiece {
  std::vector<std::int32_t> parts;
  std::int64_t count = 0;
};

/// A pair in the queue. Its count may have changed since.
struct Candidate {
  std::int64_t count = 0;
  BytePair pair;
  /// The largest comes first.
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

class PairCounts {
 public:
  explicit PairCounts(std::string_view text) {
    std::unordered_map<std::string_view, std::int64_t> counts;
    std::vector<std::string_view> order;  // of first occurrence: that of the map is no machine's like another's
    for (const auto piece : pieces_of(text))
      if (++counts[piece] == 1) order.push_back(piece);
    for (const auto piece : order) {
      CountedPiece counted{.parts = {}, .count = counts[piece]};
      for (const char c : piece) counted.parts.push_back(static_cast<unsigned char>(c));
      pieces_.push_back(std::move(counted));
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i) count_pairs(i, 1);
    for (const auto& [pair, count] : counts_) queue_.push({count, pair});
  }

  /// The pair that comes next, with its count; a count of 0 at the end.
  Candidate next() {
    while (!queue_.empty()) {
      const auto top = queue_.top();
      queue_.pop();
      const auto now = counts_[top.pair];
      if (now == top.count && now > 0) return top;
      if (now > 0 && now < top.count) queue_.push({now, top.pair});
    }
    return {};
  }

  void merge(const BytePair& pair, std::int32_t into) {
    const auto places = std::exchange(places_[pair], {});
    changed_.clear();
    for (const auto index : places) {
      count_pairs(index, -1);
      auto& parts = pieces_[index].parts;
      std::size_t out = 0;
      for (std::size_t i = 0; i < parts.size(); ++out)
        if (i + 1 < parts.size() && parts[i] == pair.first && parts[i + 1] == pair.second) {
          parts[out] = into;
          i += 2;
        } else {
          parts[out] = parts[i++];
        }
      parts.resize(out);
      count_pairs(index, 1);
    }
    for (const auto& other : changed_)
      if (const auto now = counts_[other]; now > 0) queue_.push({now, other});
  }

 private:
  void count_pairs(std::size_t index, std::int64_t sign) {
    const auto& piece = pieces_[index];
    for (std::size_t i = 0; i + 1 < piece.parts.size(); ++i) {
      const BytePair pair(piece.parts[i], piece.parts[i + 1]);
      counts_[pair] += sign * piece.count;
      changed_.insert(pair);
      if (sign > 0) places_[pair].insert(index);
    }
  }

  std::vector<CountedPiece> pieces_;
  std::map<BytePair, std::int64_t> counts_;
  std::map<BytePair, std::set<std::size_t>> places_;  ///< pieces that have the pair, or had it
  std::set<BytePair> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> frequent_merges(std::string_view text, std::int64_t most, std::int64_t least) {
  constexpr std::int32_t first_merged = 256;
  PairCounts counts(text);
  std::vector<BytePair> merges;
  while (static_cast<std::int64_t>(merges.size()) < most) {
    const auto next = counts.next();
    if (next.count < least) break;
    counts.merge(next.pair, first_merged + static_cast<std::int32_t>(merges.size()));
    merges.push_back(next.pair);
  }
  return merges;
}

}  // namespace clnet::data
