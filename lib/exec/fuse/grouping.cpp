#include "lib/exec/fuse/grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "clnet/error.h"
#include "lib/base/planning_steps.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

namespace {

bool contains(const std::vector<Index>& list, Index k) { return std::find(list.begin(), list.end(), k) != list.end(); }

}  // namespace

Grouping::Grouping(const Subgraph& graph) : graph_(graph), groups_(count()), order_(count()) {
  for (auto* flags : {&elementwise_, &view_, &is_result_, &is_first_result_, &written_}) flags->resize(count());
  for (auto* lists : {&reads_, &readers_, &elsewhere_, &where_}) lists->resize(count());
  for (auto& seen : seen_) seen.resize(count());
  writer_.resize(count());
  for (Index k = 0; k < count(); ++k) {
    writer_[k] = k;
    elementwise_[k] = is_elementwise(*node(k));
    view_[k] = node(k)->is_view();
    if (view_[k]) continue;
    groups_[k].members = {k};
    where_[k] = {k};
    const bool input_slice = input_slice_of(*node(k)).has_value();
    for (const auto& input : node(k)->inputs) {
      const auto source = graph.source(input);
      count_planning(1);
      if (source == none) continue;
      reads_[k].push_back(source);
      if (readers_[source].empty() || readers_[source].back() != k) readers_[source].push_back(k);
      if (node_of(source_of(input)) != node(source) || input_slice) elsewhere_[k].push_back(source);
    }
  }
  for (const auto& tensor : graph.wanted()) {
    const auto k = graph.source(tensor);
    if (k == none) continue;
    is_result_[k] = true;
    if (graph.root(tensor).value == node(k)->number) is_first_result_[k] = true;
  }
}

bool Grouping::reads_elsewhere(Index reader, Index source) const { return contains(elsewhere_[reader], source); }

bool Grouping::computes(Index id, Index k) const {
  const auto& group = groups_[id];
  return std::binary_search(group.members.begin(), group.members.end(), k) ||
         std::binary_search(group.first.begin(), group.first.end(), k);
}

std::vector<Index> Grouping::outputs(Index id) const {
  std::vector<Index> result;
  for (auto k : groups_[id].members)
    if (writer_[k] == id && written_[k] && elementwise_[k]) result.push_back(k);
  return result;
}

bool Grouping::is_read_outside(Index k, Index group, Index or_this) const {
  return is_result_[k] || std::any_of(readers_[k].begin(), readers_[k].end(), [&](Index reader) {
           count_planning(1);
           return writer_[reader] != group && writer_[reader] != or_this;
         });
}

template <class Function>
void Grouping::for_each_source(Index id, const Function& function) const {
  for_each_member(id, [&](Index k) {
    for (auto source : reads_[k])
      if (!computes(id, source)) function(writer_[source], k);
  });
}

/// Two searches that meet between `from` and `to` in the order: forward through readers of `from`, and back through inputs of
/// `to`.
class Grouping::Search {
 public:
  Search(const Grouping& grouping, Index from, Index to) : grouping_(grouping), from_(from), to_(to) {
    ++grouping.searches_;
    sides_[0].open = {from};
    sides_[1].open = {to};
  }

  std::optional<Joint> operator()() {
    while (true)
      for (int side : {0, 1}) {
        if (sides_[side].steps > most_steps) {
          if (sides_[1 - side].steps > most_steps) return std::nullopt;
          continue;
        }
        if (sides_[side].open.empty()) {
          auto& moved = sides_[side].found;
          std::sort(moved.begin(), moved.end(), [&](Index a, Index b) { return grouping_.order_.before(a, b); });
          return Joint{side == 1, std::move(moved)};
        }
        const Index group = sides_[side].open.back();
        sides_[side].open.pop_back();
        if (side == 0 ? meets_behind(group) : meets_before(group)) return std::nullopt;
      }
  }

 private:
  static constexpr std::size_t most_steps = 1000;
  struct Side {
    std::vector<Index> open, found;
    std::size_t steps = 0;
  };

  /// Continues to the groups that read from `group`.
  bool meets_behind(Index group) {
    bool met = false;
    grouping_.for_each_member(group, [&](Index k) {
      if (met || grouping_.writer_[k] != group) return;
      for (auto reader : grouping_.readers_[k]) {
        for (auto next : grouping_.where_[reader]) {
          step(0);
          if (next == group || grouping_.computes(next, k)) continue;
          met = met || (next == to_ ? group != from_ : grouping_.order_.before(next, to_) && enters(0, next));
        }
        if (met || sides_[0].steps > most_steps) return;
      }
    });
    return met;
  }

  /// Continues to the groups that `group` reads from.
  bool meets_before(Index group) {
    bool met = false;
    grouping_.for_each_source(group, [&](Index next, Index) {
      step(1);
      met = met || (next == from_ ? group != to_ : grouping_.order_.before(from_, next) && enters(1, next));
    });
    return met;
  }

  void step(int side) {
    ++sides_[side].steps;
    count_planning(1);
  }

  /// Whether the other search has seen the group; otherwise this one continues from it.
  bool enters(int side, Index group) {
    if (grouping_.seen_[1 - side][group] == grouping_.searches_) return true;
    auto& seen = grouping_.seen_[side][group];
    if (seen == grouping_.searches_) return false;
    seen = grouping_.searches_;
    sides_[side].open.push_back(group);
    sides_[side].found.push_back(group);
    return false;
  }

  const Grouping& grouping_;
  const Index from_, to_;
  Side sides_[2];
};

std::optional<Grouping::Joint> Grouping::joint(Index from, Index to) const {
  bool parts = false;
  for_each_member(to, [&](Index k) {
    parts =
        parts || std::any_of(elsewhere_[k].begin(), elsewhere_[k].end(), [&](Index source) { return computes(from, source); });
  });
  if (parts || order_.before(to, from)) return std::nullopt;
  return Search(*this, from, to)();
}

void Grouping::join(Index from, Index to, const Joint& joint) {
  count_planning(joint.moved.size());
  if (joint.early) {
    Index place = from;
    for (auto group = joint.moved.rbegin(); group != joint.moved.rend(); ++group) {
      order_.move_before(*group, place);
      place = *group;
    }
    order_.move_behind(to, from);
  } else {
    Index place = to;
    for (auto group : joint.moved) {
      order_.move_behind(group, place);
      place = group;
    }
  }
  absorb(from, to);
}

void Grouping::join_results(Index from, Index to) {
  if (order_.before(to, from)) order_.move_behind(to, from);
  absorb(from, to);
}

void Grouping::absorb(Index from, Index to) {
  auto& source = groups_[from];
  auto& target = groups_[to];
  std::vector<Index> together;
  together.reserve(source.members.size() + target.members.size());
  std::set_union(target.members.begin(), target.members.end(), source.members.begin(), source.members.end(),
                 std::back_inserter(together));
  count_planning(together.size());
  for (auto member : source.members) {
    if (writer_[member] == from) writer_[member] = to;
    auto& where = where_[member];
    if (contains(where, to))
      std::erase(where, from);
    else
      std::replace(where.begin(), where.end(), from, to);
  }
  target.members = std::move(together);
  source = {};
}

void Grouping::put_first(Index from, Index output, Index reader) {
  const Index to = writer_[reader];
  for (auto member : groups_[from].members) {
    if (writer_[member] == from) writer_[member] = to;
    std::replace(where_[member].begin(), where_[member].end(), from, to);
  }
  groups_[to].first = std::move(groups_[from].members);
  groups_[to].first_output = output;
  groups_[from] = {};
}

void Grouping::find_written() {
  for (Index k = 0; k < count(); ++k) written_[k] = is_read_outside(k, writer_[k]);
}

void Grouping::compute_in(const std::vector<Index>& targets, const std::vector<Index>& tree, Index k) {
  const Index writer = writer_[k];
  written_[k] = false;
  for (auto target : targets) {
    auto& members = groups_[target].members;
    for (auto member : tree) {
      const auto at = std::lower_bound(members.begin(), members.end(), member);
      if (at != members.end() && *at == member) continue;
      members.insert(at, member);
      where_[member].push_back(target);
    }
  }
  groups_[writer].members = remaining(writer, tree);
  for (auto member : tree)
    if (!computes(writer, member)) std::erase(where_[member], writer);
}

std::vector<Index> Grouping::remaining(Index writer, const std::vector<Index>& tree) const {
  auto members = groups_[writer].members;
  for (auto member = tree.rbegin(); member != tree.rend(); ++member) {
    const auto& readers = readers_[*member];
    const bool needed = std::any_of(readers.begin(), readers.end(),
                                    [&](Index reader) { return std::binary_search(members.begin(), members.end(), reader); });
    if (!needed) std::erase(members, *member);
  }
  return members;
}

std::vector<Index> Grouping::ordered() const {
  std::vector<std::vector<Index>> behind(count());
  std::vector<std::size_t> waits(count(), 0);
  std::size_t groups = 0;
  for (Index id = 0; id < count(); ++id) {
    groups += !groups_[id].members.empty();
    for_each_source(id, [&](Index source, Index) {
      count_planning(1);
      behind[source].push_back(id);
      ++waits[id];
    });
  }
  const auto later = [&](Index a, Index b) { return groups_[a].members.back() > groups_[b].members.back(); };
  std::priority_queue<Index, std::vector<Index>, decltype(later)> ready(later);
  for (Index id = 0; id < count(); ++id)
    if (!groups_[id].members.empty() && waits[id] == 0) ready.push(id);
  std::vector<Index> result;
  while (!ready.empty()) {
    const Index id = ready.top();
    ready.pop();
    result.push_back(id);
    for (auto next : behind[id])
      if (--waits[next] == 0) ready.push(next);
  }
  if (result.size() != groups)
    for (Index id = 0; id < count(); ++id)
      if (waits[id] != 0) fail(id, "depends on itself");
  return result;
}

void Grouping::check() const {
  for (Index id = 0; id < count(); ++id) {
    const auto& group = groups_[id];
    if (!std::is_sorted(group.members.begin(), group.members.end())) fail(id, "is out of order");
    for_each_member(id, [&](Index k) {
      if (!contains(where_[k], id)) fail(id, "computes what it does not know of");
      for (auto part : elsewhere_[k])
        if (computes(id, part)) fail(id, "computes a value that it reads at other places");
    });
    for_each_source(id, [&](Index source, Index) {
      if (source == id || !order_.before(source, id)) fail(id, "needs what comes behind it");
    });
    for_each_member(id, [&](Index k) {
      for (auto source : reads_[k])
        if (!computes(id, source) && !(computes(writer_[source], source) && (written_[source] || !elementwise_[source])))
          fail(id, "needs what nothing writes");
    });
    if (group.head != none) {
      if (is_first_result_[group.head]) fail(id, "keeps the result of its head from being written");
      for (auto reader : readers_[group.head])
        for (const auto& input : node(reader)->inputs)
          if (graph_.root(input).value == node(group.head)->number && where_[reader] != std::vector{id})
            fail(id, "has a head that others read");
    }
    if (group.first_output != none && (is_result_[group.first_output] || readers_[group.first_output].size() != 1))
      fail(id, "begins with a value that others read");
  }
  for (Index k = 0; k < count(); ++k)
    for (auto id : where_[k])
      if (!computes(id, k)) fail(k, "is said to be computed where it is not");
}

void Grouping::fail(Index id, std::string_view what) const {
  std::string names;
  for_each_member(id, [&](Index k) { names += fmt::format("{}{}", names.empty() ? "" : ", ", node(k)->op->name()); });
  throw Error(fmt::format("fusion: the group of {} {}; this is a fault of clnet, which CLNET_FUSION=0 avoids", names, what));
}

}  // namespace clnet::exec
