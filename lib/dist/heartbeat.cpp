#include "lib/dist/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "clnet/error.h"

namespace clnet::dist {

namespace {

constexpr int beat_tag = 0;
constexpr std::chrono::duration<double> longest_period{1.0};
/// Beats in a deadline, where that is short.
constexpr double beats_in_deadline = 8;
/// The rest of the deadline is for telling others, for programs to end, and for the launcher to notice.
constexpr double silence_in_deadline = 0.75;
/// Of a period: at most so often a new collective makes a beat, and so long others have to take the news of a failure.
constexpr double share_between_news = 0.25, share_for_failure = 0.25;

template <std::size_t size>
void put(std::array<char, size>& place, std::string_view text) {
  place.fill(0);
  std::copy_n(text.begin(), std::min(text.size(), size - 1), place.begin());
}

/// What a message brought ends somewhere.
template <std::size_t size>
std::string get(const std::array<char, size>& place) {
  return std::string(place.begin(), std::find(place.begin(), place.end(), '\0'));
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Heartbeat::Heartbeat(const Wire& wire, MpiWorld world, std::chrono::duration<double> deadline)
    : wire_(wire),
      rank_(world.rank),
      period_(std::min(longest_period, deadline / beats_in_deadline)),
      longest_silence_(deadline * silence_in_deadline),
      left_(static_cast<std::size_t>(world.size)),
      next_(Clock::now()),
      advanced_(Clock::now()) {
  peers_.resize(rank_ == 0 ? static_cast<std::size_t>(world.size - 1) : 1);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].rank = rank_ == 0 ? static_cast<int>(i) + 1 : 0;
    peers_[i].heard = advanced_;
    listen(peers_[i]);
  }
}

void Heartbeat::at(std::uint64_t collective, std::string_view text) {
  if (collective == collective_) return;
  collective_ = collective;
  what_ = text;
  // Others know soon how far this rank is, whatever happens next. Not with each collective: there may be thousands in a second.
  if (next_ - Clock::now() < period_ * (1 - share_between_news)) urgent_ = true;
}

std::string Heartbeat::name_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return at < hosts_.size() ? fmt::format("rank {} on {}", rank, hosts_[at]) : fmt::format("rank {}", rank);
}

void Heartbeat::listen(Peer& peer) {
  peer.receiving = wire_.receive(beat_channel, bytes_of(peer.received), peer.rank, beat_tag);
  peer.receives = true;
}

void Heartbeat::advance() {
  const auto now = Clock::now();
  // This process was stopped itself, and must not blame others before it has listened.
  if (now - advanced_ > longest_silence_ / 2)
    for (Peer& peer : peers_) peer.heard = now;
  advanced_ = now;
  for (Peer& peer : peers_) {
    while (peer.receives && wire_.test(peer.receiving)) heard(peer);
    if (peer.sends && wire_.test(peer.sending)) peer.sends = false;
  }
  if (rank_ == 0 && leaves_ && !last_ &&
      std::all_of(left_.begin(), left_.end(), [](const auto& when) { return when.has_value(); }))
    last_ = urgent_ = true;
  if (urgent_ || now >= next_) {
    urgent_ = false;
    next_ = now + std::chrono::duration_cast<Clock::duration>(period_);
    ++tells_left_;
    for (Peer& peer : peers_) tell(peer);
  }
  for (const Peer& peer : peers_) {
    const std::chrono::duration<double> silent = now - peer.heard;
    if (failure_ || !peer.receives || silent <= longest_silence_) continue;
    fail(fmt::format(
        "{} has been silent for {:.0f} s, last heard {}", name_of(peer.rank), silent.count(),
        peer.collective == 0 ? "before the first collective" : fmt::format("in collective {}, {}", peer.collective, peer.what)));
  }
}

void Heartbeat::heard(Peer& peer) {
  peer.receives = false;
  peer.heard = Clock::now();
  peer.collective = peer.received.collective;
  peer.what = get(peer.received.what);
  const auto leaves = [&](int rank) {
    if (rank < 0 || rank >= static_cast<int>(left_.size())) return;
    auto& when = left_[static_cast<std::size_t>(rank)];
    if (!when) when = peer.heard;
  };
  leaves(rank_ == 0 ? -1 : peer.received.left);
  switch (peer.received.state) {
    case State::runs: break;
    case State::leaves: leaves(peer.rank); break;
    case State::failed: fail(get(peer.received.text)); break;
    case State::last:
      // Nothing follows it. Rank 0's asks for an answer.
      if (rank_ != 0) last_ = urgent_ = true;
      return;
  }
  listen(peer);
}

void Heartbeat::tell(Peer& peer) {
  // One at a time: who does not listen gets no more.
  if (peer.sends || peer.told_last) {
    urgent_ = urgent_ || (last_ && !peer.told_last);
    return;
  }
  peer.sent.state = failure_ ? State::failed : last_ ? State::last : leaves_ ? State::leaves : State::runs;
  peer.sent.collective = collective_;
  peer.sent.left = -1;
  for (std::size_t i = 0; rank_ == 0 && i < left_.size(); ++i) {
    const auto at = (tells_left_ + i) % left_.size();
    if (left_[at]) peer.sent.left = static_cast<int>(at);
    if (left_[at]) break;
  }
  put(peer.sent.what, what_);
  put(peer.sent.text, failure_.value_or(""));
  peer.sending = wire_.send(beat_channel, bytes_of(peer.sent), peer.rank, beat_tag);
  peer.sends = true;
  peer.told_last = last_ && !failure_;
}

void Heartbeat::fail(std::string text) {
  if (!failure_) failure_ = std::move(text);
}

void Heartbeat::tell_failure(const std::string& text) {
  fail(text);
  const auto end = Clock::now() + period_ * share_for_failure;
  std::vector<bool> told(peers_.size());
  bool waits = true;
  while (waits && Clock::now() < end) {
    waits = false;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_[i];
      if (peer.sends && wire_.test(peer.sending)) peer.sends = false;
      if (!peer.sends && !told[i] && !peer.told_last) {
        tell(peer);
        told[i] = true;
      }
      waits = waits || peer.sends;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Heartbeat::leave() {
  leaves_ = urgent_ = true;
  left_[static_cast<std::size_t>(rank_)] = Clock::now();
}

bool Heartbeat::all_left() {
  return last_ && std::all_of(peers_.begin(), peers_.end(),
                              [](const Peer& peer) { return peer.told_last && !peer.sends && !peer.receives; });
}

std::optional<Clock::time_point> Heartbeat::left(int rank) const { return left_[static_cast<std::size_t>(rank)]; }

}  // namespace clnet::dist
