#include "tools/self_test/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "clnet/error.h"

namespace clnet::tools {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The part of clnet-info that runs checks, in a process of its own: it reads
/// from one pipe which, and writes to another what it finds, line by line.
class Worker {
 public:
  Worker(const std::vector<std::string>& arguments) {
    auto [order_read, order_write] = pipe();
    auto [answer_read, answer_write] = pipe();
    auto program = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> all{program, "--self-test-worker", std::to_string(answer_write)};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) fail("a process");
    if (pid_ == 0) {
      ::fcntl(answer_write, F_SETFD, 0);
      // A worker that hangs must not outlive a tool that was killed.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(order_read, STDIN_FILENO);
      // What it prints otherwise is a driver's.
      if (const int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(order_read);
    ::close(answer_write);
    output_ = order_write;
    input_ = answer_read;
  }
  ~Worker() {
    if (pid_ > 0) wait(true);
    ::close(input_);
    ::close(output_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int input() const { return input_; }
  /// What wait() says of one that it leaves behind.
  static constexpr auto stays = "does not end, and cannot be killed";

  /// A process that has ended is noticed by its silence.
  void tell(std::size_t check) {
    const auto line = std::to_string(check) + "\n";
    for (std::size_t done = 0; done < line.size();) {
      const auto count = ::write(output_, line.data() + done, line.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;
      done += static_cast<std::size_t>(count);
    }
  }

  /// Takes in what there is to read; false at the end.
  bool take() {
    std::array<char, 4096> piece{};
    const auto size = ::read(input_, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) return true;
    if (size <= 0) return false;
    pending_.append(piece.data(), static_cast<std::size_t>(size));
    return true;
  }
  /// The next whole line of what was taken in.
  std::optional<std::string> line() {
    const auto end = pending_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    auto result = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return result;
  }

  /// How it ended, in words. One that a driver keeps in the kernel may not end
  /// even when it is killed: it is left behind.
  std::string wait(bool kill) {
    if (kill) ::kill(pid_, SIGKILL);
    auto status = ended_within_limit();
    if (!status && !kill) {
      ::kill(pid_, SIGKILL);
      status = ended_within_limit();
    }
    pid_ = -1;
    if (!status) return stays;
    return words(*status);
  }

 private:
  /// Its status once it has ended; none where that takes too long.
  std::optional<int> ended_within_limit() const {
    constexpr std::chrono::seconds limit{5};
    constexpr std::chrono::milliseconds pause{5};
    for (const auto until = Clock::now() + limit; Clock::now() < until; std::this_thread::sleep_for(pause)) {
      int status = 0;
      const auto ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_ || (ended < 0 && errno != EINTR)) return status;
    }
    return std::nullopt;
  }
  static std::string words(int status) {
    if (WIFSIGNALED(status)) return fmt::format("crashes the process: {}", ::strsignal(WTERMSIG(status)));
    return fmt::format("ends the process with {}", WEXITSTATUS(status));
  }
  [[noreturn]] static void fail(const char* what) {
    throw Error(fmt::format("self-test: {} cannot be made: {}", what, std::strerror(errno)));
  }
  static std::array<int, 2> pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("a pipe");
    // Where the caller has closed the standard streams, their numbers would be taken for them.
    for (auto& end : ends) {
      if (end > STDERR_FILENO) continue;
      const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
      if (moved < 0) fail("a pipe");
      ::close(std::exchange(end, moved));
    }
    return ends;
  }

  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
  std::string pending_;
};

/// Who ends while it is written to must not end this process, too.
class NoPipeSignal {
 public:
  NoPipeSignal() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~NoPipeSignal() { ::signal(SIGPIPE, before_); }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  void (*before_)(int);
};

/// Checks that one process runs, in their order: those of a problem, which
/// share its values, or of a limit, from small to large.
using Portion = std::deque<std::size_t>;
/// Those of an operation share programs.
using Group = std::deque<Portion>;

std::list<Group> grouped(const std::vector<Check>& checks, bool timed) {
  std::list<Group> groups;
  std::map<std::string, Group*> by_name;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const auto& check = checks[i];
    if (check.timed.empty() == timed) continue;
    auto& group = by_name[!check.op.empty() ? check.op : "limit " + check.limit];
    if (!group) group = &groups.emplace_back();
    // A problem begins with the default choice.
    if (group->empty() || (check.solver.empty() && check.limit.empty())) group->emplace_back();
    group->back().push_back(i);
  }
  return groups;
}

/// A GPU's fault may end everybody's work on it, and then each finding must be
/// of one check.
std::size_t processes_for(const DeviceInfo& device) {
  return device.type == DeviceType::cpu ? std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4) : 1;
}

class Crew {
 public:
  Crew(const std::vector<Check>& checks, const DeviceInfo& device, const SelfTestOptions& options)
      : checks_(checks), patience_(options.full ? 600 : 240) {
    findings_.results.resize(checks.size());
    findings_.processes = options.jobs > 0 ? options.jobs : processes_for(device);
    arguments_ = {"--device", fmt::format("{}:{}", device.platform_index, device.device_index)};
    if (options.full) arguments_.emplace_back("--full");
    if (!options.only.empty()) arguments_.insert(arguments_.end(), {"--only", options.only});
  }

  void run(bool timed) {
    groups_ = grouped(checks_, timed);
    members_.resize(timed ? 1 : findings_.processes);  // those that stay have built programs
    for (auto& member : members_) member.group = nullptr;
    while (!given_up_ && assign()) listen();
  }

  Findings take() { return std::move(findings_); }

 private:
  struct Member {
    std::unique_ptr<Worker> worker = nullptr;
    Group* group = nullptr;              ///< which it works at
    Portion portion{};                   ///< what is left of what it took of a group
    std::optional<std::size_t> check{};  ///< which it was given last and has not done
    std::optional<std::size_t> last{};   ///< which it has done last
    bool running = false;                ///< it has begun with `check`
    bool lost = false;                   ///< its device has failed, and it ends
    Clock::time_point heard{};
  };

  /// The next check of the member's portion. After its last one it takes
  /// another: of the same group, else of the first one that nobody has, else
  /// the last one of the group that most is left of.
  std::optional<std::size_t> next(Member& member) {
    if (member.portion.empty() && (!member.group || member.group->empty())) {
      const auto free = [&](const Group& group) {
        return std::none_of(members_.begin(), members_.end(), [&](const Member& other) { return other.group == &group; });
      };
      member.group = nullptr;
      const auto group =
          std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) { return !one.empty() && free(one); });
      if (group != groups_.end()) member.group = &*group;
    }
    if (member.portion.empty() && member.group) {
      member.portion = std::move(member.group->front());
      member.group->pop_front();
    } else if (member.portion.empty()) {
      const auto most =
          std::max_element(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) { return a.size() < b.size(); });
      if (most == groups_.end() || most->empty()) return std::nullopt;
      member.portion = std::move(most->back());
      most->pop_back();
    }
    const auto check = member.portion.front();
    member.portion.pop_front();
    return check;
  }

  bool is_without(const Check& check) const {
    return !check.solver.empty() && std::find(without_.begin(), without_.end(), check.op + ":" + check.solver) != without_.end();
  }

  /// Gives a check to everybody who has none; false when nobody has one.
  bool assign() {
    bool busy = false;
    for (auto& member : members_) {
      if (!member.check) {
        do member.check = next(member);
        while (member.check && is_without(checks_[*member.check]));
        if (member.check) start(member);
      }
      busy = busy || member.check;
    }
    return busy;
  }

  void start(Member& member) {
    if (!member.worker) {
      member.worker = std::make_unique<Worker>(arguments_);
      member.last.reset();
    }
    member.running = false;
    member.heard = Clock::now();
    member.worker->tell(*member.check);
  }

  /// Waits until one of them says something, ends or is silent for too long.
  void listen() {
    std::vector<pollfd> ready;
    auto silent = Clock::time_point::max();
    for (const auto& member : members_)
      if (member.check) {
        ready.push_back({member.worker->input(), POLLIN, 0});
        silent = std::min(silent, member.heard + patience_);
      }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(silent - Clock::now()).count();
    if (::poll(ready.data(), ready.size(), static_cast<int>(std::max<std::int64_t>(left, 0))) < 0 && errno != EINTR)
      throw Error(fmt::format("self-test: nothing can be heard: {}", std::strerror(errno)));
    std::size_t k = 0;
    for (auto& member : members_) {
      if (!member.check) continue;
      const bool speaks = ready[k++].revents != 0;
      const bool ended = speaks && !member.worker->take();
      while (auto line = member.worker->line()) hear(member, json::parse(*line));
      if (member.lost) {
        member.worker.reset();
        member.lost = false;
      } else if (ended) {
        lose(member, member.worker->wait(false));
      } else if (member.check && Clock::now() - member.heard >= patience_) {
        const auto ending = member.worker->wait(true);
        lose(member, fmt::format("hangs: nothing for {} s{}", patience_.count(), ending == Worker::stays ? "; " + ending : ""));
      }
    }
  }

  void hear(Member& member, const json& said) {
    member.heard = Clock::now();
    if (said.contains("begin")) began_ = member.running = true;
    if (!said.contains("end")) return;
    findings_.results.at(said["end"].get<std::size_t>()) = {
        static_cast<Verdict>(said["verdict"].get<int>()), said["detail"].get<std::string>(), said["milliseconds"].get<double>()};
    member.last = member.check;
    member.lost = said["lost"].get<bool>();
    const auto& check = checks_[*member.check];
    if (member.lost && !check.solver.empty()) without_.push_back(check.op + ":" + check.solver);
    member.check.reset();
    member.running = false;
  }

  /// The member's process has ended.
  void lose(Member& member, const std::string& what) {
    member.worker.reset();
    if (member.running) {
      const auto& check = checks_[*member.check];
      findings_.results[*member.check] = {Verdict::fails, what};
      if (!check.solver.empty()) without_.push_back(check.op + ":" + check.solver);
      member.check.reset();
      return;
    }
    if (!began_) throw Error(fmt::format("self-test: the device {} before a check has begun", what));
    if (member.last) {
      // Where a process may end at any time, the others come farther.
      findings_.endings.push_back({"after " + checks_[*member.last].name, what});
      if (member.check) start(member);
      return;
    }
    const auto unknown = std::count_if(findings_.results.begin(), findings_.results.end(), [](const auto& r) { return !r; });
    findings_.endings.push_back({fmt::format("the last {} checks", unknown), what + " before one of them has begun"});
    given_up_ = true;
  }

  const std::vector<Check>& checks_;
  /// Longer than any check takes on a busy machine: building CLBlast's kernels
  /// is the longest.
  const std::chrono::seconds patience_;
  std::vector<std::string> arguments_;
  std::list<Group> groups_;
  std::vector<Member> members_;
  Solvers without_;
  Findings findings_;
  bool began_ = false, given_up_ = false;
};

}  // namespace

Findings run_in_processes(const std::vector<Check>& checks, const DeviceInfo& device, const SelfTestOptions& options) {
  const NoPipeSignal no_signal;
  Crew crew(checks, device, options);
  crew.run(false);
  crew.run(true);
  return crew.take();
}

}  // namespace clnet::tools
