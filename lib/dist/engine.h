// The one thread that calls MPI: from its initialisation to its end, for all groups of the process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/dist/collective.h"
#include "lib/dist/heartbeat.h"
#include "lib/dist/transport.h"

namespace clnet::dist {

class Engine {
 public:
  /// Starts the thread and MPI in it. There is one engine in a process, and it stays. Throws Error where MPI refuses.
  static Engine& start(const MpiModule& module, std::chrono::duration<double> deadline);

  const MpiWorld& world() const { return world_; }
  /// From now on collectives count, and errors name hosts.
  void begin_job(std::vector<std::string> hosts);
  /// Has an operation done behind those of the same turn. Throws RankLost where the job has lost a rank.
  std::shared_ptr<Posted> post(Operation operation);
  /// Ends the job on all ranks.
  void abort(std::string_view reason);
  /// Leaves the job, and ends MPI with all other ranks. Does nothing where there is no engine, or it has ended.
  static void finish_running();
  /// The number of the next group: one that no group on this rank has.
  int next_group = 1;

 private:
  struct Ticket;
  /// An operation with its number, and when something of it last came or went.
  struct Job {
    Collective collective;
    std::uint64_t number;
    std::shared_ptr<Ticket> ticket;
    Clock::time_point moved;
  };

  Engine(const MpiModule& module, std::chrono::duration<double> deadline);
  void run();
  void work(const Wire& wire, Heartbeat& heartbeat);
  bool advance_jobs(const Wire& wire, Heartbeat& heartbeat);
  void require_ranks(const Heartbeat& heartbeat) const;
  void rest(std::chrono::duration<double> longest);
  void fail(std::string text);
  [[noreturn]] void throw_failure(const std::string& where);
  void finish();

  const MpiModule& module_;
  std::chrono::duration<double> deadline_;
  std::int64_t process_;
  MpiWorld world_;

  std::mutex mutex_;  ///< of all that follows, up to the thread's own
  std::condition_variable asked_, changed_;
  std::deque<Job> posted_;
  std::optional<std::vector<std::string>> hosts_;
  std::optional<std::string> abort_, refused_, failure_;
  Clock::time_point failed_;
  std::optional<std::uint64_t> collectives_;  ///< posted since the job began
  std::string name_;                          ///< this rank, with its host
  bool started_ = false, leaves_ = false, ends_ = false, finishes_ = false, finished_ = false;
  bool told_ = false;  ///< the program has the failure
  int waiting_ = 0;    ///< threads that have nothing to do before a job is done

  // The thread's own.
  std::deque<Job> jobs_;
  Clock::time_point moved_;
  std::thread thread_;
};

/// Sums over the ranks of a group.
std::shared_ptr<Transport> mpi_transport(std::shared_ptr<const Members> group);

}  // namespace clnet::dist
