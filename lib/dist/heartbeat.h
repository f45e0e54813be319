// Who was heard when, and at which collective. Ranks tell rank 0 that they are alive, and rank 0 tells the others, in small
// messages beside the collectives. They come from the engine's thread, whatever the program does meanwhile: what counts is
// silence.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/dist/wire.h"

namespace clnet::dist {

class Heartbeat {
 public:
  Heartbeat(const Wire& wire, MpiWorld world, std::chrono::duration<double> deadline);

  /// What this rank tells: the number of its last collective, and what that is.
  void at(std::uint64_t collective, std::string_view text);
  /// Names of hosts, once they are known.
  void hosts(std::vector<std::string> names) { hosts_ = std::move(names); }
  /// "rank 3 on node2".
  std::string name_of(int rank) const;

  /// Receives, sends what is due, and looks for silence.
  void advance();
  /// Why the job cannot go on: a rank is silent, or somebody said so.
  const std::optional<std::string>& failure() const { return failure_; }
  /// Says so to all ranks, for as long as they take to listen, but not long.
  void tell_failure(const std::string& text);

  /// This rank has nothing more to do.
  void leave();
  /// All ranks have left, and no message is under way.
  bool all_left();
  /// When a rank was heard to have left.
  std::optional<Clock::time_point> left(int rank) const;

  std::chrono::duration<double> period() const { return period_; }

 private:
  enum class State : std::uint32_t { runs, leaves, failed, last };
  struct Beat {
    State state = State::runs;
    std::int32_t left = -1;  ///< of rank 0: one that has left, another each time
    std::uint64_t collective = 0;
    std::array<char, 96> what{};
    std::array<char, 400> text{};
  };
  /// The other end of a line: rank 0, or for that each other rank.
  struct Peer {
    int rank = 0;
    Beat received, sent;
    MpiRequest receiving = 0, sending = 0;
    bool receives = false, sends = false;
    bool told_last = false;  ///< it has got its last beat
    Clock::time_point heard;
    std::uint64_t collective = 0;
    std::string what;
  };

  void listen(Peer& peer);
  void heard(Peer& peer);
  void tell(Peer& peer);
  void fail(std::string text);

  const Wire& wire_;
  int rank_;
  std::chrono::duration<double> period_, longest_silence_;
  std::vector<Peer> peers_;
  std::vector<std::optional<Clock::time_point>> left_;
  std::vector<std::string> hosts_;
  std::uint64_t collective_ = 0;
  std::string what_;
  std::optional<std::string> failure_;
  bool leaves_ = false;  ///< this rank
  bool last_ = false;    ///< all have left
  bool urgent_ = false;
  std::size_t tells_left_ = 0;
  Clock::time_point next_, advanced_;
};

}  // namespace clnet::dist
