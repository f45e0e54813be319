// A job of several ranks, in one of several ways: `dist_ranks WAY RANKS`. Of random-end there are many: random-end:17.
// tests/dist/run.sh starts it under a launcher. It needs no device. `dist_ranks times RANKS ELEMENTS...` measures instead of
// testing, for tools/dev/model_scale.py.
#include <clnet/dist.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/os/library.h"
#include "lib/dist/choose_mpi.h"
#include "lib/dist/engine.h"
#include "lib/dist/exchange.h"

namespace {

using namespace clnet;
using dist::Group;

void require(bool holds, const std::string& what) {
  if (!holds) throw Error("test: " + what);
}

/// A number of a rank and an element, neither smooth nor the same on any two.
double number(int rank, std::size_t at) {
  return std::sin(1.0 + static_cast<double>(rank) * 12.9898 + static_cast<double>(at) * 0.78233) * 8;
}

/// Lengths around blocks and segments, and empty ones.
const std::vector<std::size_t> lengths{0, 1, 2, 7, 1000, 4097, (1 << 20) + 3, 2'500'001};

/// The sums of floats, as the documents define them: in f32, in the order of ranks.
template <class Load>
float sum_in_order(int ranks, std::size_t at, const Load& load) {
  float sum = load(0, at);
  for (int rank = 1; rank < ranks; ++rank) sum += load(rank, at);
  return sum;
}

void sums(const Group& world) {
  const int ranks = world.size(), own = world.rank();
  const auto as_f32 = [](int rank, std::size_t at) { return static_cast<float>(number(rank, at)); };
  for (const auto n : lengths) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = as_f32(own, i);
    dist::all_reduce(values, world);
    for (std::size_t i = 0; i < n; ++i) {
      require(values[i] == sum_in_order(ranks, i, as_f32), "all_reduce of f32");
      double exact = 0;
      for (int rank = 0; rank < ranks; ++rank) exact += number(rank, i);
      require(std::abs(values[i] - exact) < 1e-5 * ranks, "all_reduce of f32 beside f64");
    }
  }
  const std::size_t n = 10001;
  for (const auto dtype : {Dtype::f16, Dtype::bf16}) {
    const auto to_bits = dtype == Dtype::f16 ? float_to_half : float_to_bfloat16;
    const auto from_bits = dtype == Dtype::f16 ? half_to_float : bfloat16_to_float;
    const auto load = [&](int rank, std::size_t at) { return from_bits(to_bits(as_f32(rank, at))); };
    std::vector<std::uint16_t> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = to_bits(as_f32(own, i));
    dist::all_reduce({dtype, values.data(), n}, world);
    for (std::size_t i = 0; i < n; ++i) require(values[i] == to_bits(sum_in_order(ranks, i, load)), "all_reduce of 16 bits");
  }
  std::vector<double> doubles(n);
  for (std::size_t i = 0; i < n; ++i) doubles[i] = number(own, i);
  dist::all_reduce(doubles, world);
  std::vector<std::int32_t> ints(n, 2'000'000'000);
  std::vector<std::int64_t> longs(n, std::int64_t{1} << 40);
  std::vector<std::int8_t> signed_bytes(n, -3);
  std::vector<std::uint8_t> bytes(n, 100);
  dist::all_reduce(ints, world);
  dist::all_reduce(longs, world);
  dist::all_reduce(signed_bytes, world);
  dist::all_reduce(bytes, world);
  for (std::size_t i = 0; i < n; ++i) {
    double exact = number(0, i);
    for (int rank = 1; rank < ranks; ++rank) exact += number(rank, i);
    require(doubles[i] == exact, "all_reduce of f64");
    require(ints[i] == static_cast<std::int32_t>(static_cast<std::uint32_t>(ranks) * 2'000'000'000U), "all_reduce of i32 wraps");
    require(longs[i] == ranks * (std::int64_t{1} << 40), "all_reduce of i64");
    require(signed_bytes[i] == static_cast<std::int8_t>(-3 * ranks), "all_reduce of i8");
    require(bytes[i] == static_cast<std::uint8_t>(100 * ranks), "all_reduce of u8");
  }
  bool refused = false;
  bool flag = true;
  try {
    dist::all_reduce({Dtype::boolean, &flag, 1}, world);
  } catch (const DtypeError&) {
    refused = true;
  }
  require(refused, "all_reduce of bool is refused");
}

void gathers(const Group& world) {
  const int ranks = world.size(), own = world.rank();
  const auto size = static_cast<std::size_t>(ranks);
  for (const auto n : lengths) {
    if (n > 2'000'000 / size) continue;
    std::vector<float> part(n), whole(n * size);
    for (std::size_t i = 0; i < n; ++i) part[i] = static_cast<float>(number(own, i));
    dist::all_gather(part, whole, world);
    for (std::size_t i = 0; i < whole.size(); ++i)
      require(whole[i] == static_cast<float>(number(static_cast<int>(i / n), i % n)), "all_gather");
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(number(own, i));
    dist::reduce_scatter(whole, part, world);
    for (std::size_t i = 0; i < n; ++i) {
      const auto load = [](int rank, std::size_t at) { return static_cast<float>(number(rank, at)); };
      require(part[i] == sum_in_order(ranks, static_cast<std::size_t>(own) * n + i, load), "reduce_scatter");
    }
    for (int root = 0; root < ranks; ++root) {
      for (std::size_t i = 0; i < n; ++i) part[i] = static_cast<float>(number(own, i));
      dist::broadcast(part, root, world);
      for (std::size_t i = 0; i < n; ++i) require(part[i] == static_cast<float>(number(root, i)), "broadcast");
    }
  }
  bool refused = false;
  std::vector<float> part(3), whole(size + 1);
  try {
    dist::all_gather(part, whole, world);
  } catch (const ShapeError& error) {
    refused = std::string(error.what()).find("expected " + std::to_string(ranks) + " parts of 3") != std::string::npos;
  }
  require(refused, "all_gather with a wrong size is refused");
}

/// Around the ring, and to all at once from threads.
void points(const Group& world) {
  const int ranks = world.size(), own = world.rank(), next = (own + 1) % ranks, previous = (own + ranks - 1) % ranks;
  for (const std::size_t n : {std::size_t{1}, std::size_t{5000}, std::size_t{20'000'000}}) {
    std::vector<float> sent(n), received(n);
    for (std::size_t i = 0; i < n; i += 97) sent[i] = static_cast<float>(number(own, i));
    // All send first: a thread receives.
    std::thread other([&] { dist::recv(received, previous, world); });
    dist::send(sent, next, world);
    other.join();
    for (std::size_t i = 0; i < n; i += 97) require(received[i] == static_cast<float>(number(previous, i)), "send and recv");
  }
}

/// Halves, halves of them in another order, and collectives of both at once.
void splits(const Group& world) {
  const int ranks = world.size(), own = world.rank(), half = own % 2;
  const Group part = world.split(half), turned = world.split(0, -own);
  require(part.size() == (ranks + 1 - half) / 2 && part.rank() == own / 2, "rank and size of a part");
  require(turned.rank() == ranks - 1 - own && turned.size() == ranks, "keys order ranks");
  require(world.local_rank() == own && part.local_rank() == own / 2 && part.host() == world.host(), "local rank");
  const auto all = static_cast<std::size_t>(turned.size());
  std::vector<std::int32_t> order(all);
  dist::all_gather(std::vector<std::int32_t>{own}, order, turned);
  for (std::size_t i = 0; i < all; ++i) require(order[i] == ranks - 1 - static_cast<int>(i), "all_gather of a turned group");
  std::vector<float> first(100'000), second(100'000);
  for (int round = 0; round < 20; ++round) {
    std::fill(first.begin(), first.end(), static_cast<float>(own + round));
    std::fill(second.begin(), second.end(), static_cast<float>(own * 2));
    // Of two groups in either order.
    std::thread other([&] { dist::all_reduce(first, part); });
    dist::all_reduce(second, world);
    other.join();
    float expected = 0;
    for (int rank = half; rank < ranks; rank += 2) expected += static_cast<float>(rank + round);
    require(first.front() == expected && first.back() == expected, "a sum of a part");
    require(second.back() == static_cast<float>(ranks * (ranks - 1)), "a sum of all beside it");
  }
  const Group alone = world.split(own);
  std::vector<float> value{3};
  dist::all_reduce(value, alone);
  require(alone.size() == 1 && value[0] == 3, "a group of one");
}

/// Buckets that are on their way together, of different sizes and dtypes.
void buckets(const Group& world) {
  const auto transport = dist::mpi_transport(dist::members_of(world));
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < 4; ++i)
    values.emplace_back(700'000 * i + 1, static_cast<float>(world.rank() + 1) * static_cast<float>(i));
  std::vector<std::shared_ptr<dist::Posted>> posted;
  for (auto& bucket : values)
    posted.push_back(transport->post({Dtype::f32, {dist::in_place(std::as_writable_bytes(std::span(bucket)))}}));
  std::vector<double> last{0.5};
  posted.push_back(transport->post({Dtype::f64, {dist::in_place(std::as_writable_bytes(std::span(last)))}}));
  while (!posted.back()->done()) std::this_thread::yield();
  for (const auto& bucket : posted) bucket->wait();
  const auto ranks = static_cast<float>(world.size());
  for (std::size_t i = 0; i < 4; ++i)
    for (const float value : values[i]) require(value == ranks * (ranks + 1) / 2 * static_cast<float>(i), "a bucket");
  require(last[0] == 0.5 * world.size(), "the last bucket");
}

/// A bucket of several arrays: some become their sums, others have them put elsewhere, and one is empty.
void buckets_of_several(const Group& world) {
  const auto transport = dist::mpi_transport(dist::members_of(world));
  const auto ranks = static_cast<float>(world.size());
  std::vector<std::vector<float>> from, to;
  std::vector<dist::Addend> addends;
  for (const std::size_t n : {3U, 2'500'000U, 0U, 70'001U, 1U}) {
    from.emplace_back(n, static_cast<float>(world.rank() + 1));
    to.emplace_back(from.size() % 2 == 0 ? n : 0, 0.0F);
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto bytes = std::as_writable_bytes(std::span(from[i]));
    addends.push_back(dist::in_place(bytes));
    if (i % 2 != 0) addends.back().to = std::as_writable_bytes(std::span(to[i])).data();
  }
  transport->post({Dtype::f32, addends})->wait();
  const auto all_are = [](const std::vector<float>& values, float expected, const char* what) {
    for (const float value : values) require(value == expected, what);
  };
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool moves = i % 2 != 0;
    all_are(moves ? to[i] : from[i], ranks * (ranks + 1) / 2, "an array of a bucket");
    if (moves) all_are(from[i], static_cast<float>(world.rank() + 1), "an array whose sum is elsewhere");
  }
}

/// A bucket with a turn of its own, which ranks post at other moments between their other collectives.
void buckets_beside(const Group& world) {
  const auto transport = dist::mpi_transport(dist::members_of(world));
  const auto bucket = std::make_shared<std::vector<float>>(1'500'000, static_cast<float>(world.rank() + 1));
  std::vector<float> others(200'000, 1);
  const auto post = [&] {
    return transport->post({Dtype::f32, {dist::in_place(std::as_writable_bytes(std::span(*bucket)))}, bucket, true});
  };
  std::shared_ptr<dist::Posted> posted;
  if (world.rank() % 2 == 0) posted = post();
  dist::all_reduce(others, world);
  if (world.rank() % 2 != 0) posted = post();
  dist::all_reduce(others, world);
  posted->wait();
  const auto ranks = static_cast<float>(world.size());
  require(others.front() == ranks * ranks && others.back() == ranks * ranks, "a sum beside a bucket");
  for (const float value : *bucket) require(value == ranks * (ranks + 1) / 2, "a bucket beside sums");
}

/// Arrays of several buckets, of which some are empty.
void buckets_of_arrays(const Group& world) {
  for (const auto dtype : {Dtype::f32, Dtype::bf16}) {
    // One rank sends nothing.
    const auto sent = [&](float value) {
      return dtype == Dtype::f32 || world.size() == 1 ? value : bfloat16_to_float(float_to_bfloat16(value));
    };
    const auto load = [&](int rank, std::size_t at) { return sent(static_cast<float>(number(rank, at))); };
    std::vector<std::vector<float>> arrays;
    for (const auto n : lengths) {
      auto& array = arrays.emplace_back(n);
      for (std::size_t i = 0; i < n; ++i) array[i] = static_cast<float>(number(world.rank(), i));
    }
    dist::sum_over_ranks(arrays, dtype, world);
    for (const auto& array : arrays)
      for (std::size_t i = 0; i < array.size(); ++i)
        require(array[i] == sent(sum_in_order(world.size(), i, load)), "sum_over_ranks");
  }
}

std::vector<std::int64_t> extents;  ///< of the values whose exchange is measured: the last words

/// How long sums of these values take in the buckets of gradients. Rank 0 prints the buckets' bytes, and seconds of each round.
void measure(const Group& world, Dtype dtype) {
  std::vector<Spec> values;
  for (const auto extent : extents) values.push_back({{extent}, dtype});
  std::vector<std::vector<std::byte>> buckets;
  std::string line = "buckets";
  for (const auto& bucket : dist::buckets_of(values)) {
    std::int64_t bytes = 0;
    for (const auto i : bucket) bytes += values[i].bytes();
    buckets.emplace_back(static_cast<std::size_t>(bytes));
    line += " " + std::to_string(bytes);
  }
  line += "\nseconds";
  const auto transport = dist::mpi_transport(dist::members_of(world));
  constexpr int rounds = 15;
  for (int round = 0; round < rounds; ++round) {
    // So that all begin at once.
    std::vector<float> begin{1};
    dist::all_reduce(begin, world);
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::shared_ptr<dist::Posted>> posted;
    for (auto& bucket : buckets) posted.push_back(transport->post({dtype, {dist::in_place(bucket)}}));
    for (const auto& bucket : posted) bucket->wait();
    line += " " + std::to_string(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  if (world.rank() == 0) std::cout << line + "\n" << std::flush;
}

void sum_once(const Group& world) {
  std::vector<float> values(1000, 1);
  dist::all_reduce(values, world);
  require(values.back() == static_cast<float>(world.size()), "a sum");
}

const int victim = 1;

/// Tells when, in seconds, for whoever measures how long the others take to end.
void end_by(int signal) {
  std::cout << "ends at " + std::to_string(std::time(nullptr)) + "\n" << std::flush;
  std::raise(signal);
}
/// One rank is stopped or killed, while MPI starts or later. The number says which, how and when.
void end_at_random(unsigned number, int rank) {
  std::mt19937 random(number);
  const auto chosen = static_cast<int>(random() % 4), signal = random() % 2 == 0 ? SIGSTOP : SIGKILL;
  const std::chrono::milliseconds when(random() % 3000);
  if (rank != chosen) return;
  std::thread([=] {
    std::this_thread::sleep_for(when);
    end_by(signal);
  }).detach();
}
/// Until the job ends, or in a minute.
void work_on(const Group& world) {
  std::mt19937 random(1);
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1); std::chrono::steady_clock::now() < end;) {
    std::vector<float> values(random() % 2 == 0 ? random() % 100 : random() % 1'000'000, 1);
    dist::all_reduce(values, world);
    require(values.empty() || values.back() == static_cast<float>(world.size()), "a sum");
  }
}

/// The rank as launchers tell it.
int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  return 0;
}

/// The program initialises MPI itself, which it has through clnet's module, with this level of threads.
void initialise_mpi(int level) {
  const auto choice = dist::choose_mpi();
  require(choice.has_value(), "a launcher");
  dist::load_mpi(*choice);
  using Init = int(int*, char***, int, int*);
  auto* const init = reinterpret_cast<Init*>(os::loaded_symbol("MPI_Init_thread"));
  int provided = 0;
  require(init && init(nullptr, nullptr, level, &provided) == 0 && provided >= level, "MPI_Init_thread");
}
void finalise_mpi() {
  using Finalize = int();
  reinterpret_cast<Finalize*>(os::loaded_symbol("MPI_Finalize"))();
}
// The same numbers in both implementations.
constexpr int funneled = 1, serialized = 2;

const std::map<std::string, std::function<void(const Group&)>> ways{
    {"collectives",
     [](const Group& world) {
       sums(world);
       gathers(world);
       if (world.size() > 1) points(world);
       splits(world);
       buckets(world);
       buckets_of_several(world);
       buckets_beside(world);
       buckets_of_arrays(world);
       dist::agree({{"model", "cnn"}, {"seed", "1"}}, world);
     }},
    {"disagree",
     [](const Group& world) {
       dist::agree({{"model", "cnn"},
                    {"data", world.rank() == victim ? "mnist" : "fashion-mnist"},
                    {"seed", std::to_string(world.rank())}},
                   world);
     }},
    {"stop",
     [](const Group& world) {
       for (int i = 0; i < 3; ++i) sum_once(world);
       if (world.rank() == victim) end_by(SIGSTOP);
       sum_once(world);
     }},
    {"stop-first",
     [](const Group& world) {
       sum_once(world);
       if (world.rank() == 0) end_by(SIGSTOP);
       sum_once(world);
     }},
    {"kill",
     [](const Group& world) {
       sum_once(world);
       if (world.rank() == victim) end_by(SIGKILL);
       sum_once(world);
     }},
    // Silence counts, not slowness.
    {"cold",
     [](const Group& world) {
       sum_once(world);
       if (world.rank() == victim)
         std::this_thread::sleep_for(std::chrono::seconds(2) * std::atoi(std::getenv("CLNET_DIST_TIMEOUT")));
       sum_once(world);
     }},
    {"leave",
     [](const Group& world) {
       sum_once(world);
       if (world.rank() != victim) sum_once(world);
     }},
    {"abort",
     [](const Group& world) {
       sum_once(world);
       if (world.rank() == victim) world.abort("the disk is full");
       sum_once(world);
     }},
    {"random-end", work_on},
    {"times", [](const Group& world) { measure(world, Dtype::f32); }},
    {"times-bf16", [](const Group& world) { measure(world, Dtype::bf16); }},
    {"wrong-mpi", sum_once},
    {"own-mpi", sum_once},
    {"own-mpi-alone", sum_once},
    {"unlike",
     [](const Group& world) {
       std::vector<float> values(world.rank() == victim ? 1000 : 2000);
       dist::all_reduce(values, world);
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string words = argc > 1 ? argv[1] : "", way = words.substr(0, words.find(':'));
  if (!ways.contains(way)) {
    std::cerr << "usage: dist_ranks WAY [RANKS]\n";
    return 2;
  }
  if (words != way) end_at_random(static_cast<unsigned>(std::stoul(words.substr(way.size() + 1))), launched_rank());
  const bool own_mpi = way.starts_with("own-mpi");
  try {
    if (own_mpi) initialise_mpi(way == "own-mpi" ? serialized : funneled);
    const auto world = dist::init();
    for (int word = 3; word < argc && way.starts_with("times"); ++word) extents.push_back(std::stoll(argv[word]));
    if (argc > 2)
      require(world.size() == std::atoi(argv[2]), "as many ranks as were started, not " + std::to_string(world.size()));
    ways.at(way)(world);
    if (own_mpi) {
      dist::finish();
      finalise_mpi();
    }
    // One line, whatever else is written at the time.
    std::cout << "rank " + std::to_string(world.rank()) + ": ok\n" << std::flush;
  } catch (const dist::RankLost& error) {
    std::cerr << std::string("lost: ") + error.what() + "\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << std::string("error: ") + error.what() + "\n";
    if (own_mpi) finalise_mpi();
    return 1;
  }
}
