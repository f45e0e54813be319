#include "lib/dist/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace clnet::dist {

namespace {

constexpr std::size_t most_bytes = 64 << 10;

std::vector<Item> items_of(const std::string& text) {
  std::vector<Item> items;
  for (const auto& item : nlohmann::json::parse(text)) items.push_back({item.at(0), item.at(1)});
  return items;
}

}  // namespace

std::optional<std::string> disagreement(std::span<const std::vector<Item>> ranks) {
  const auto& first = ranks[0];
  for (std::size_t at = 0; at < first.size(); ++at) {
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const auto& name = first[at].name;
      if (at >= ranks[rank].size() || ranks[rank][at].name != name)
        return fmt::format("ranks disagree: rank 0 has \"{}\", and rank {} has none", name, rank);
      if (const auto& value = ranks[rank][at].value; value != first[at].value)
        return fmt::format("ranks disagree about {}: rank 0 has \"{}\", rank {} has \"{}\"", name, first[at].value, rank, value);
    }
  }
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].size() > first.size())
      return fmt::format("ranks disagree: rank {} has \"{}\", and rank 0 has none", rank, ranks[rank][first.size()].name);
  }
  return std::nullopt;
}

std::vector<std::string> gather_texts(const std::string& text, const Group& group) {
  if (text.size() > most_bytes)
    throw Error(fmt::format("agreement of ranks: {} bytes of items, expected {} at most", text.size(), most_bytes));
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> sizes(ranks);
  all_gather(std::vector{static_cast<std::int64_t>(text.size())}, sizes, group);
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::vector<std::uint8_t> own(text.begin(), text.end()), all(longest * ranks);
  own.resize(longest);
  all_gather(own, all, group);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto* begin = all.data() + rank * longest;
    texts.emplace_back(begin, begin + static_cast<std::size_t>(sizes[rank]));
  }
  return texts;
}

void agree(const std::vector<Item>& items, const Group& group) {
  auto own = nlohmann::json::array();
  for (const auto& [name, value] : items) own.push_back({name, value});
  // Bytes that are no UTF-8 differ as much as others.
  const auto text = own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::vector<std::vector<Item>> ranks;
  for (const auto& other : gather_texts(text, group)) ranks.push_back(items_of(other));
  if (const auto line = disagreement(ranks)) throw Error(*line);
}

}  // namespace clnet::dist
