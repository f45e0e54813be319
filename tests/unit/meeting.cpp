// Where the lanes of a step meet: sums in the order of the members, whoever comes when, and no member that waits forever.
#include "lib/parallel/meeting.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <vector>

namespace clnet::parallel {
namespace {

using Numbers = std::vector<float>;

/// What a member's thread has added up in so many sums, or what it throws.
std::future<Numbers> member_of(Meeting& meeting, std::size_t member, std::vector<Numbers> rounds, bool sleeps = false) {
  return std::async(std::launch::async, [&meeting, member, rounds = std::move(rounds), sleeps]() mutable {
    Attendance attendance(member, &meeting);
    Numbers sums;
    std::mt19937 random(static_cast<unsigned>(member) + 7);
    for (std::size_t k = 0; k < rounds.size(); ++k) {
      if (sleeps) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      Attendance::now()->add_up(static_cast<std::int64_t>(k), rounds[k]);
      sums.insert(sums.end(), rounds[k].begin(), rounds[k].end());
    }
    return sums;
  });
}

}  // namespace

TEST_CASE("members of a meeting have the same sums, with the same bits whoever comes first") {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-1e4F, 1e4F);
  std::vector<std::vector<Numbers>> brought(3);
  Numbers want;
  for (int k = 0; k < 200; ++k) {
    const auto count = random() % 4;
    for (auto& member : brought) {
      auto& numbers = member.emplace_back();
      for (std::size_t i = 0; i < count; ++i) numbers.push_back(any(random));
    }
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (const auto& member : brought) sum += member.back()[i];
      want.push_back(static_cast<float>(sum));
    }
  }
  for (int time = 0; time < 3; ++time) {
    Meeting meeting(3);
    std::vector<std::future<Numbers>> all;
    for (std::size_t i = 0; i < 3; ++i) all.push_back(member_of(meeting, i, brought[i], true));
    for (auto& each : all) CHECK(each.get() == want);
  }
  Meeting alone(1);
  CHECK(member_of(alone, 0, {{1, 2}, {3}}).get() == Numbers{1, 2, 3});
  CHECK(Attendance::now() == nullptr);
}

TEST_CASE("a meeting ends for all when a member leaves, or does not come") {
  Meeting left(2);
  auto longer = member_of(left, 0, {{1}, {2}, {3}}), shorter = member_of(left, 1, {{1}, {2}});
  CHECK(shorter.get() == Numbers{2, 4});
  CHECK_THROWS_AS(longer.get(), MeetingEnded);

  Meeting empty(2);
  auto waits = member_of(empty, 1, {{1}});
  CHECK(waits.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  empty.end();
  CHECK_THROWS_AS(waits.get(), MeetingEnded);
  CHECK_THROWS_AS(member_of(empty, 0, {{1}}).get(), MeetingEnded);
}

TEST_CASE("members of a meeting that bring unlike sums get an error") {
  const std::vector<std::pair<std::int64_t, Numbers>> unlike{{1, {1}}, {0, {1, 2}}};
  for (const auto& [which, numbers] : unlike) {
    Meeting meeting(2);
    auto other = member_of(meeting, 0, {{1}});
    // Either may be the last.
    int ended = 0, told = 0;
    const auto count = [&](const auto& run) {
      try {
        run();
      } catch (const MeetingEnded&) {
        ++ended;
      } catch (const UnlikeParts&) {
        ++told;
      }
    };
    Numbers own = numbers;
    count([&, number = which] { meeting.add_up(1, number, own); });
    count([&] { (void)other.get(); });
    CHECK(ended == 1);
    CHECK(told == 1);
  }
}

}  // namespace clnet::parallel
