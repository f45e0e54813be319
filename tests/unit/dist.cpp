// What a job of several processes decides by itself: sums, the choice of an MPI, and whether ranks agree. Jobs are in tests/dist.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "clnet/error.h"
#include "lib/dist/agreement.h"
#include "lib/dist/choose_mpi.h"
#include "lib/dist/sum.h"

using namespace clnet;

namespace {

template <class T>
std::vector<T> sums_of(Dtype dtype, const std::vector<std::vector<T>>& ranks) {
  std::vector<const std::byte*> parts;
  for (const auto& part : ranks) parts.push_back(reinterpret_cast<const std::byte*>(part.data()));
  std::vector<T> sums(ranks[0].size());
  dist::add_parts(dtype, parts, reinterpret_cast<std::byte*>(sums.data()), sums.size());
  return sums;
}

using Variables = std::map<std::string, std::string>;

/// The choice, or the error's text.
std::string choice(const Variables& variables, const std::string& loaded = "", const std::string& asked = "",
                   const std::vector<std::string>& modules = {"openmpi", "mpich"}) {
  try {
    return dist::choose_mpi(
               {.asked = asked.empty() ? std::nullopt : std::optional(asked),
                .loaded = loaded,
                .environment = [&](const char* name) -> std::optional<std::string> {
                  const auto found = variables.find(name);
                  return found == variables.end() ? std::nullopt : std::optional(found->second);
                },
                .has_module =
                    [&](std::string_view name) { return std::find(modules.begin(), modules.end(), name) != modules.end(); }})
        .value_or("alone");
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("sums over ranks are added in the order of ranks, 16-bit floats in f32") {
  // In another order the one is lost.
  CHECK(sums_of<float>(Dtype::f32, {{1e8F}, {-1e8F}, {1}}) == std::vector<float>{1});
  CHECK(sums_of<float>(Dtype::f32, {{1}, {1e8F}, {-1e8F}}) == std::vector<float>{0});
  CHECK(sums_of<double>(Dtype::f64, {{0.1}, {0.2}, {0.3}}) == std::vector<double>{0.1 + 0.2 + 0.3});
  // 2048 + 1 + 1 is 2050 in f32, and 2048 if each sum were rounded to f16.
  const auto half = [](float value) { return std::vector<std::uint16_t>{float_to_half(value)}; };
  CHECK(sums_of<std::uint16_t>(Dtype::f16, {half(2048), half(1), half(1)}) == half(2050));
  const auto brain = [](float value) { return std::vector<std::uint16_t>{float_to_bfloat16(value)}; };
  CHECK(sums_of<std::uint16_t>(Dtype::bf16, {brain(256), brain(1), brain(1)}) == brain(258));
  CHECK(sums_of<std::int8_t>(Dtype::i8, {{100}, {100}}) == std::vector<std::int8_t>{-56});
  CHECK(sums_of<std::int64_t>(Dtype::i64, {{INT64_MAX}, {1}}) == std::vector<std::int64_t>{INT64_MIN});
  // More than a tile, and into a part's own place.
  std::vector<float> first(1300), second(1300);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i), second[i] = 0.5F;
  const std::vector<const std::byte*> parts{reinterpret_cast<const std::byte*>(first.data()),
                                            reinterpret_cast<const std::byte*>(second.data())};
  dist::add_parts(Dtype::f32, parts, reinterpret_cast<std::byte*>(second.data()), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) REQUIRE(second[i] == static_cast<float>(i) + 0.5F);
  CHECK_THROWS_AS(dist::require_sums(Dtype::boolean), DtypeError);
}

TEST_CASE("the MPI that started a process is the one that it uses") {
  CHECK(choice({}) == "alone");
  CHECK(choice({{"OMPI_COMM_WORLD_SIZE", "4"}}) == "openmpi");
  CHECK(choice({{"OMPI_COMM_WORLD_SIZE", "4"}}, "", "", {}) == "openmpi");
  CHECK(choice({{"OMPI_COMM_WORLD_SIZE", "1"}}) == "alone");
  CHECK(choice({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}) == "mpich");
  CHECK(choice({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}) == "alone");
  CHECK(choice({{"PMI_RANK", "2"}}) == "mpich");
  // What the program has loaded, or the user says, comes before.
  CHECK(choice({{"PMI_SIZE", "4"}}, "Open MPI v4.1.4, package: Debian OpenMPI") == "openmpi");
  CHECK(choice({}, "MPICH Version:      4.0.2\nMPICH Release date: ...") == "mpich");
  CHECK_THAT(choice({}, "Some MPI 1.0\nof today"),
             Catch::StartsWith("this program has loaded an MPI that clnet does not know, \"Some MPI 1.0\": "));
  CHECK(choice({{"PMI_SIZE", "4"}}, "", "off") == "alone");
  CHECK(choice({{"PMI_SIZE", "4"}}, "", "./other.so") == "./other.so");
}

TEST_CASE("Slurm's steps are told apart by their type, else by the modules that are there") {
  const Variables step{{"SLURM_STEP_NUM_TASKS", "4"}}, typed{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_MPI_TYPE", "pmix_v4"}};
  CHECK(choice({{"SLURM_STEP_NUM_TASKS", "1"}}) == "alone");
  CHECK(choice(typed) == "openmpi");
  CHECK(choice({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_MPI_TYPE", "pmi2"}}) == "mpich");
  CHECK(choice(typed, "", "", {"mpich"}) == "mpich");
  CHECK(choice(step, "", "", {"openmpi"}) == "openmpi");
  CHECK(choice({{"PMIX_RANK", "0"}}, "", "", {"mpich"}) == "mpich");
  const std::string remedy = "CLNET_MPI=openmpi, mpich or the path of a module says which, CLNET_MPI=off works without";
  CHECK(choice(step) == "this process is one of several, and clnet has modules for two implementations of MPI: " + remedy);
  CHECK(choice(step, "", "", {}) ==
        "this process is one of several, and clnet has no module for any implementation of MPI: " + remedy);
}

TEST_CASE("one line names the first item on which ranks disagree") {
  using Items = std::vector<dist::Item>;
  const Items usual{{"model", "cnn"}, {"seed", "1"}};
  const auto line = [](const std::vector<Items>& ranks) { return dist::disagreement(ranks).value_or("agree"); };
  CHECK(line({usual}) == "agree");
  CHECK(line({usual, usual, usual}) == "agree");
  CHECK(line({usual, usual, {{"model", "cnn"}, {"seed", "2"}}}) ==
        "ranks disagree about seed: rank 0 has \"1\", rank 2 has \"2\"");
  CHECK(line({usual, {{"model", "cnn"}}}) == "ranks disagree: rank 0 has \"seed\", and rank 1 has none");
  CHECK(line({{{"model", "cnn"}}, usual}) == "ranks disagree: rank 1 has \"seed\", and rank 0 has none");
}
