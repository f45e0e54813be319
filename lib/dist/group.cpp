#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "clnet/dist.h"
#include "clnet/version.h"
#include "lib/base/env.h"
#include "lib/base/os/host.h"
#include "lib/dist/agreement.h"
#include "lib/dist/choose_mpi.h"
#include "lib/dist/engine.h"
#include "lib/dist/members.h"

namespace clnet::dist {

namespace {

constexpr std::int64_t usual_timeout = 60, least_timeout = 1, longest_timeout = 86400;

/// How many ranks before `rank` are on its host.
int local_rank_of(const std::vector<std::string>& hosts, int rank) {
  const auto own = hosts.begin() + rank;
  return static_cast<int>(std::count(hosts.begin(), own, *own));
}

Group join() {
  env::check();
  const auto timeout = env::integer("CLNET_DIST_TIMEOUT", least_timeout, longest_timeout).value_or(usual_timeout);
  auto members = std::make_shared<Members>();
  const auto choice = choose_mpi();
  Engine* engine = choice ? &Engine::start(load_mpi(*choice), std::chrono::seconds(timeout)) : nullptr;
  const auto world = engine ? engine->world() : MpiWorld{};
  if (const auto ranks = launched_ranks(); engine && world.size == 1 && ranks != "1")
    throw Error(
        fmt::format("the launcher has started {} ranks, of which this one's MPI knows none: CLNET_MPI={} is another MPI than "
                    "the launcher's",
                    ranks, *choice));
  members->rank = world.rank;
  members->ranks.resize(static_cast<std::size_t>(world.size));
  std::iota(members->ranks.begin(), members->ranks.end(), 0);
  members->engine = engine;
  members->hosts.resize(members->ranks.size());
  const auto group = GroupAccess::make(std::shared_ptr<const Members>(members));
  members->hosts = gather_texts(os::host_name(), group);
  members->local_rank = local_rank_of(members->hosts, world.rank);
  agree({{"clnet's version", std::string(version())}, {"CLNET_DIST_TIMEOUT", std::to_string(timeout)}}, group);
  if (engine) engine->begin_job(members->hosts);
  return group;
}

void require_rank(std::string_view call, int rank, const Group& group) {
  if (rank < 0 || rank >= group.size())
    throw Error(fmt::format("{}: there is no rank {} in a group of {}", call, rank, group.size()));
}

/// The sizes and dtypes of a collective with parts.
void require_parts(std::string_view call, const ConstHostArray& part, const ConstHostArray& whole, const Group& group) {
  if (part.dtype != whole.dtype)
    throw DtypeError(fmt::format("{}: the part has {}, the whole {}", call, to_string(part.dtype), to_string(whole.dtype)));
  if (whole.count != part.count * static_cast<std::size_t>(group.size()))
    throw ShapeError(
        fmt::format("{}: the whole has {} elements, expected {} parts of {}", call, whole.count, group.size(), part.count));
}

ConstHostArray as_const(const HostArray& array) { return {array.dtype, array.data, array.count}; }

void require_numbers(std::string_view call, Dtype dtype) {
  if (dtype == Dtype::boolean) throw DtypeError(fmt::format("{}: bool has no sums, expected numbers", call));
}

void copy(const ConstHostArray& from, const HostArray& to) {
  const auto* begin = static_cast<const std::byte*>(from.data);
  if (from.data != to.data) std::copy_n(begin, from.count * size_of(from.dtype), static_cast<std::byte*>(to.data));
}

Operation operation(Kind kind, const Group& group, Dtype dtype, const Array& array) {
  return {.kind = kind, .group = members_of(group), .dtype = dtype, .arrays = {array}};
}

void run(Operation wanted) {
  auto* const engine = wanted.group->engine;
  engine->post(std::move(wanted))->wait();
}

}  // namespace

int Group::rank() const { return members_->rank; }
int Group::size() const { return members_->size(); }
int Group::local_rank() const { return members_->local_rank; }
const std::string& Group::host() const { return host(rank()); }
const std::string& Group::host(int rank) const {
  require_rank("Group::host", rank, *this);
  return members_->hosts[static_cast<std::size_t>(rank)];
}

Group Group::split(int colour, int key) const {
  if (colour < 0) throw Error(fmt::format("Group::split: colour {}, expected 0 or more", colour));
  const auto ranks = members_->ranks.size();
  auto* const engine = members_->engine;
  constexpr std::size_t words = 3;
  std::vector<std::int64_t> all(words * ranks);
  all_gather(std::vector<std::int64_t>{colour, key, engine ? engine->next_group : 1}, all, *this);
  const auto word = [&](std::size_t rank, std::size_t at) { return all[words * rank + at]; };
  std::vector<std::int64_t> colours;
  std::int64_t next = 0;
  std::vector<std::size_t> order;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    colours.push_back(word(rank, 0));
    next = std::max(next, word(rank, 2));
    if (word(rank, 0) == colour) order.push_back(rank);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return word(a, 1) < word(b, 1); });
  std::sort(colours.begin(), colours.end());
  colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
  const auto id = next + (std::lower_bound(colours.begin(), colours.end(), colour) - colours.begin());
  if (engine && tags_of_group * (id + 1) - 1 > engine->world().largest_tag)
    throw Error(fmt::format("Group::split: too many groups, MPI has tags for {}", engine->world().largest_tag / tags_of_group));
  auto members = std::make_shared<Members>();
  for (const auto rank : order) {
    if (rank == static_cast<std::size_t>(members_->rank)) members->rank = static_cast<int>(members->ranks.size());
    members->ranks.push_back(members_->ranks[rank]);
    members->hosts.push_back(members_->hosts[rank]);
  }
  members->id = static_cast<int>(id);
  members->local_rank = local_rank_of(members->hosts, members->rank);
  members->engine = engine;
  if (engine) engine->next_group = static_cast<int>(next + static_cast<std::int64_t>(colours.size()));
  return GroupAccess::make(std::shared_ptr<const Members>(std::move(members)));
}

void Group::abort(std::string_view reason) const {
  if (members_->engine) members_->engine->abort(reason);
}

Group init() {
  static std::mutex mutex;
  static std::optional<Group> world;
  const std::lock_guard lock(mutex);
  if (!world) world = join();
  return *world;
}

void finish() { Engine::finish_running(); }

void all_reduce(HostArray values, const Group& group) {
  require_numbers("all_reduce", values.dtype);
  if (group.size() == 1) return;
  auto* const data = static_cast<std::byte*>(values.data);
  run(operation(Kind::all_reduce, group, values.dtype, {values.count, data, data}));
}

void all_gather(ConstHostArray part, HostArray whole, const Group& group) {
  require_parts("all_gather", part, as_const(whole), group);
  if (group.size() == 1) return copy(part, whole);
  run(operation(Kind::all_gather, group, part.dtype,
                {part.count, static_cast<const std::byte*>(part.data), static_cast<std::byte*>(whole.data)}));
}

void reduce_scatter(ConstHostArray whole, HostArray part, const Group& group) {
  require_parts("reduce_scatter", as_const(part), whole, group);
  require_numbers("reduce_scatter", part.dtype);
  if (group.size() == 1) return copy(whole, part);
  run(operation(Kind::reduce_scatter, group, part.dtype,
                {part.count, static_cast<const std::byte*>(whole.data), static_cast<std::byte*>(part.data)}));
}

void broadcast(HostArray values, int root, const Group& group) {
  require_rank("broadcast", root, group);
  if (group.size() == 1) return;
  auto wanted = operation(Kind::broadcast, group, values.dtype, {values.count, nullptr, static_cast<std::byte*>(values.data)});
  wanted.peer = root;
  run(std::move(wanted));
}

void send(ConstHostArray values, int to, const Group& group) {
  require_rank("send", to, group);
  if (to == group.rank()) throw Error("send: a rank cannot send to itself");
  auto wanted = operation(Kind::send, group, values.dtype, {values.count, static_cast<const std::byte*>(values.data), nullptr});
  wanted.peer = to;
  run(std::move(wanted));
}

void recv(HostArray values, int from, const Group& group) {
  require_rank("recv", from, group);
  if (from == group.rank()) throw Error("recv: a rank cannot receive from itself");
  auto wanted = operation(Kind::recv, group, values.dtype, {values.count, nullptr, static_cast<std::byte*>(values.data)});
  wanted.peer = from;
  run(std::move(wanted));
}

}  // namespace clnet::dist
