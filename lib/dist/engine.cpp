#include "lib/dist/engine.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "clnet/error.h"
#include "lib/base/log.h"
#include "lib/base/os/host.h"
#include "lib/base/os/process.h"
#include "lib/cl/before_drivers_end.h"
#include "lib/dist/sum.h"

namespace clnet::dist {

namespace {

using Seconds = std::chrono::duration<double>;

/// Messages often come so soon that the thread would sleep longer.
constexpr std::chrono::microseconds spins{50};
constexpr std::chrono::duration<double> shortest_rest{50e-6}, longest_rest{1e-3};
/// While the program waits its core is free, and each rest makes a step longer.
constexpr std::chrono::microseconds spins_when_awaited{500};
constexpr std::chrono::duration<double> longest_rest_when_awaited{200e-6};
/// Where there is nothing to do but to listen for beats.
constexpr std::chrono::duration<double> idle_rest{20e-3};
/// A rank that has left says nothing more: what it sent before is here soon.
constexpr std::chrono::duration<double> longest_after_leaving{1.0};
/// The program's time to end by itself after a failure, and the time that others get to say why: a launcher ends all ranks once
/// one has ended with an error.
constexpr double rest_in_deadline = 1.0 / 6, grace_in_deadline = 1.0 / 12;
constexpr std::chrono::duration<double> longest_grace{1.0};

/// Never destroyed: other threads may use it until the process ends.
Engine* running = nullptr;

}  // namespace

struct Engine::Ticket : Posted {
  Ticket(Engine& engine, std::string where) : engine(engine), where(std::move(where)) {}

  bool done() override {
    const std::lock_guard lock(engine.mutex_);
    if (!is_done && engine.failure_) engine.throw_failure(where);
    return is_done;
  }
  void wait() override {
    std::unique_lock lock(engine.mutex_);
    if (!is_done && !engine.failure_) {
      ++engine.waiting_;
      engine.asked_.notify_one();
      engine.changed_.wait(lock, [&] { return is_done || engine.failure_; });
      --engine.waiting_;
    }
    if (!is_done) engine.throw_failure(where);
  }

  Engine& engine;
  const std::string where;  ///< as "in collective 3, all_reduce of 100 f32"
  bool is_done = false;
};

Engine& Engine::start(const MpiModule& module, Seconds deadline) {
  auto* engine = new Engine(module, deadline);
  std::unique_lock lock(engine->mutex_);
  engine->thread_ = std::thread([engine] { engine->run(); });
  const bool answered = engine->changed_.wait_for(lock, deadline, [&] { return engine->started_ || engine->refused_; });
  if (engine->refused_) {
    lock.unlock();
    engine->thread_.join();
    const Error error(*engine->refused_);
    delete engine;
    throw error;
  }
  running = engine;
  // Behind MPI's own handlers, so that this one runs before them; and before the one that ends the drivers.
  std::atexit(finish_running);
  ocl::before_drivers_end(finish_running);
  if (!answered) {
    engine->failed_ = Clock::now();
    engine->failure_ =
        fmt::format("{} has not started all ranks within {:.0f} s (CLNET_DIST_TIMEOUT)", module.implementation, deadline.count());
    engine->throw_failure({});
  }
  return *engine;
}

Engine::Engine(const MpiModule& module, Seconds deadline) : module_(module), deadline_(deadline), process_(os::own_process()) {}

void Engine::begin_job(std::vector<std::string> hosts) {
  const std::lock_guard lock(mutex_);
  name_ = fmt::format("rank {} on {}", world_.rank, hosts[static_cast<std::size_t>(world_.rank)]);
  hosts_ = std::move(hosts);
  collectives_ = 0;
}

std::shared_ptr<Posted> Engine::post(Operation operation) {
  const std::lock_guard lock(mutex_);
  const auto number = collectives_ ? ++*collectives_ : 0;
  auto where = fmt::format("in collective {}, {}", number, operation.text());
  if (failure_) throw_failure(where);
  if (leaves_) throw Error(operation.text() + ": the process is ending, and has left the job");
  auto ticket = std::make_shared<Ticket>(*this, std::move(where));
  posted_.push_back({Collective(std::move(operation)), number, ticket, Clock::now()});
  asked_.notify_one();
  return ticket;
}

void Engine::abort(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (!abort_) abort_ = reason;
  told_ = true;
  asked_.notify_one();
}

void Engine::run() {
  std::array<char, mpi_error_size> error{};
  MpiWorld world;
  const bool refused = module_.start(&world, error.data()) != 0;
  {
    const std::lock_guard lock(mutex_);
    // Nobody waits any more.
    if (failure_) return;
    world_ = world;
    (refused ? void(refused_ = fmt::format("{}: {}", module_.implementation, error.data())) : void(started_ = true));
    changed_.notify_all();
  }
  if (refused) return;
  const Wire wire(module_);
  try {
    Heartbeat heartbeat(wire, world, deadline_);
    try {
      work(wire, heartbeat);
    } catch (const std::exception& fault) {
      // Rank 0 tells the others, and this one tells rank 0 of its own failures.
      if (world.rank == 0 || !heartbeat.failure()) heartbeat.tell_failure(fault.what());
      fail(fault.what());
    }
  } catch (const std::exception& fault) {
    fail(fault.what());
  }
}

void Engine::work(const Wire& wire, Heartbeat& heartbeat) {
  moved_ = Clock::now();
  auto pause = shortest_rest;
  bool left = false, awaited = false;
  for (;;) {
    std::optional<std::string> abort;
    bool leaves = false, begins_to_wait = false;
    {
      const std::lock_guard lock(mutex_);
      while (!posted_.empty()) {
        jobs_.push_back(std::move(posted_.front()));
        posted_.pop_front();
      }
      if (hosts_) {
        heartbeat.hosts(*std::exchange(hosts_, std::nullopt));
      }
      abort = abort_;
      leaves = leaves_;
      begins_to_wait = waiting_ > 0 && !awaited;
      awaited = waiting_ > 0;
    }
    if (abort) throw RankLost(heartbeat.name_of(world_.rank) + ": " + *abort);
    const bool moved = advance_jobs(wire, heartbeat);
    heartbeat.advance();
    if (heartbeat.failure()) throw RankLost(*heartbeat.failure());
    require_ranks(heartbeat);
    if (leaves && jobs_.empty()) {
      if (!std::exchange(left, true)) heartbeat.leave();
      if (heartbeat.all_left()) break;
    }
    const auto now = Clock::now();
    if (moved || begins_to_wait) {
      moved_ = now;
      pause = shortest_rest;
    } else if (jobs_.empty() && !left) {
      rest(std::min(idle_rest, heartbeat.period() / 4));
      moved_ = Clock::now();
      pause = shortest_rest;
    } else if (now - moved_ < (awaited ? spins_when_awaited : spins)) {
      std::this_thread::yield();
    } else {
      rest(pause);
      pause = std::min(2 * pause, awaited ? longest_rest_when_awaited : longest_rest);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    finishes_ = true;
    changed_.notify_all();
  }
  std::array<char, mpi_error_size> error{};
  if (module_.finish(error.data())) throw Error(error.data());
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool Engine::advance_jobs(const Wire& wire, Heartbeat& heartbeat) {
  bool moved = false;
  std::set<std::tuple<int, Kind, int>> taken;
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (!taken.insert(job->collective.operation().turn()).second) {
      ++job;
      continue;
    }
    if (job->number > 0) heartbeat.at(job->number, job->collective.operation().text());
    const bool done = job->collective.advance(wire);
    if (job->collective.moved() || done) {
      job->moved = Clock::now();
      moved = true;
    }
    if (!done) {
      ++job;
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      job->ticket->is_done = true;
      changed_.notify_all();
    }
    job = jobs_.erase(job);
  }
  return moved;
}

/// Throws RankLost where a rank has left that another still waits for.
void Engine::require_ranks(const Heartbeat& heartbeat) const {
  const auto now = Clock::now();
  for (const Job& job : jobs_) {
    const auto rank = job.collective.waits_for();
    const auto left = rank ? heartbeat.left(*rank) : std::nullopt;
    if (left && now - std::max(*left, job.moved) > std::min(longest_after_leaving, deadline_ / 4))
      throw RankLost(heartbeat.name_of(*rank) + " has ended its program before the others");
  }
}

void Engine::rest(Seconds longest) {
  std::unique_lock lock(mutex_);
  const bool left = leaves_;
  const auto waiting = waiting_;
  asked_.wait_for(lock, longest, [&] { return !posted_.empty() || abort_ || leaves_ != left || waiting_ > waiting; });
}

/// Ends the process, unless the program does.
void Engine::fail(std::string text) {
  std::unique_lock lock(mutex_);
  failure_ = std::move(text);
  failed_ = Clock::now();
  changed_.notify_all();
  if (changed_.wait_for(lock, deadline_ * rest_in_deadline, [&] { return ends_; })) return;
  if (!told_) logging::write(*failure_);
  os::end_now(1);
}

void Engine::throw_failure(const std::string& where) {
  told_ = true;
  throw RankLost(name_.empty() || where.empty() ? *failure_ : fmt::format("{}; {} is {}", *failure_, name_, where));
}

void Engine::finish_running() {
  // Handlers run twice, and in forked children.
  if (auto* engine = std::exchange(running, nullptr); engine && engine->process_ == os::own_process()) engine->finish();
}

void Engine::finish() {
  std::unique_lock lock(mutex_);
  ends_ = leaves_ = true;
  asked_.notify_one();
  changed_.notify_all();
  changed_.wait(lock, [&] { return finishes_ || failure_; });
  // Beats have ended.
  if (!failure_ && !changed_.wait_for(lock, deadline_, [&] { return finished_ || failure_; })) {
    failure_ = fmt::format("{} has not ended within {:.0f} s (CLNET_DIST_TIMEOUT)", module_.implementation, deadline_.count());
    failed_ = Clock::now();
  }
  if (!failure_) {
    lock.unlock();
    thread_.join();
    return;
  }
  if (!std::exchange(told_, true)) logging::write(*failure_);
  lock.unlock();
  std::this_thread::sleep_until(
      failed_ + std::chrono::duration_cast<Clock::duration>(std::min(longest_grace, deadline_ * grace_in_deadline)));
  os::end_now(1);
}

namespace {

/// What a group of one rank posts is its sum already.
struct Done : Posted {
  bool done() override { return true; }
  void wait() override {}
};

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(std::shared_ptr<const Members> group) : group_(std::move(group)) {}

  std::shared_ptr<Posted> post(const Bucket& bucket) override {
    require_sums(bucket.dtype);
    if (group_->size() == 1) {
      for (const auto& [from, to, bytes] : bucket.addends)
        if (from != to) std::memcpy(to, from, bytes);
    }
    if (group_->size() == 1 || bucket.addends.empty()) return std::make_shared<Done>();
    std::vector<Array> arrays;
    for (const auto& [from, to, bytes] : bucket.addends) arrays.push_back({bytes / size_of(bucket.dtype), from, to});
    return group_->engine->post({.kind = Kind::all_reduce,
                                 .group = group_,
                                 .dtype = bucket.dtype,
                                 .arrays = std::move(arrays),
                                 .owner = bucket.owner,
                                 .beside = bucket.beside});
  }
  void abort(std::string_view reason) override {
    if (group_->engine) group_->engine->abort(reason);
  }

 private:
  std::shared_ptr<const Members> group_;
};

}  // namespace

std::shared_ptr<Transport> mpi_transport(std::shared_ptr<const Members> group) {
  return std::make_shared<MpiTransport>(std::move(group));
}

}  // namespace clnet::dist
