#include "lib/pocl/jobs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

namespace clnet::pocl {

using nlohmann::json;
using ocl::KernelToBuild, ocl::Noted;

namespace {

struct SameProgram {
  bool operator()(const KernelToBuild* a, const KernelToBuild* b) const { return a->program < b->program; }
};

json arguments_of(const KernelToBuild& kernel) {
  json result = json::array();
  for (const auto& argument : kernel.arguments) {
    if (const auto* buffer = std::get_if<KernelToBuild::Buffer>(&argument)) {
      result.push_back({{"buffer", buffer->bytes}});
    } else if (const auto* local = std::get_if<KernelToBuild::Local>(&argument)) {
      result.push_back({{"local", local->bytes}});
    } else if (const auto* scalar = std::get_if<KernelToBuild::Scalar>(&argument)) {
      result.push_back({{"scalar", {scalar->bytes, scalar->bits}}});
    } else if (const auto* offset = std::get_if<std::uint64_t>(&argument)) {
      result.push_back({{"ulong", *offset}});
    } else if (const auto* integer = std::get_if<std::int32_t>(&argument)) {
      result.push_back({{"int", *integer}});
    } else {
      result.push_back({{"float", std::get<float>(argument)}});
    }
  }
  return result;
}

}  // namespace

std::vector<Job> jobs_of(const DeviceInfo& device, const std::vector<const KernelToBuild*>& kernels, const Notes& notes) {
  const auto state = state_of(device);
  std::vector<std::pair<const KernelToBuild*, std::string>> wanted;
  for (const auto* kernel : kernels)
    if (auto note = note_of(state, *kernel); notes.of(note) == Noted::nothing) wanted.emplace_back(kernel, std::move(note));
  // In a process that has done nothing else, what ended another one shows whether it was to blame.
  const auto others =
      std::stable_partition(wanted.begin(), wanted.end(), [&](const auto& kernel) { return notes.is_suspect(kernel.second); });
  std::map<const KernelToBuild*, Job, SameProgram> jobs;
  for (auto at = wanted.begin(); at != wanted.end(); ++at) {
    auto& [kernel, note] = *at;
    auto& job = jobs[kernel];
    if (job.kernels.empty()) {
      job.program = &kernel->program;
      job.suspect = at < others;
      job.text = {{"builds", json::array()}, {"kernels", json::array()}, {"runs", !kernel->program.users()}};
      for (const auto& [text, options] : ocl::ways_to_build(kernel->program, device)) {
        job.size = text.size();
        job.text["builds"].push_back({{"source", text}, {"options", options}});
      }
    }
    if (std::find(job.kernels.begin(), job.kernels.end(), note) != job.kernels.end()) continue;
    job.kernels.push_back(std::move(note));
    job.text["kernels"].push_back({{"function", kernel->function},
                                   {"local", kernel->local},
                                   {"global", kernel->global},
                                   {"arguments", arguments_of(*kernel)}});
  }
  std::vector<Job> result;
  for (auto& [program, job] : jobs) result.push_back(std::move(job));
  // Then the long ones: nobody should begin one when the others are about to end.
  std::stable_sort(result.begin(), result.end(),
                   [](const Job& a, const Job& b) { return std::tie(a.suspect, a.size) > std::tie(b.suspect, b.size); });
  return result;
}

}  // namespace clnet::pocl
