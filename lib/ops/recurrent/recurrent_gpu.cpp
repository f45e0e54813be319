// Recurrences on GPUs: kernels/recurrent/recurrent_gpu.cl. Groups of work-items cannot wait for one another, so either one of
// them owns all states of its sequences and goes through all steps, reading all weights in each, or each step is a launch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "clnet/error.h"
#include "lib/exec/choose/device_class.h"
#include "lib/ops/loops.h"
#include "lib/ops/recurrent/recurrent_solvers.h"
#include "lib/ops/rows.h"

namespace clnet::ops {

namespace {

/// What a work-group owns, and how its items divide the product.
struct Owned {
  bool whole = false;  ///< all states, and all steps
  std::int64_t rows = 1, units = 1;
  std::int64_t most_kept = 0;  ///< terms whose weights stay in an item's registers, if it has so many
  std::int64_t split = 1;      ///< of the terms among items
  std::int64_t kept = 0;

  std::int64_t each() const { return std::min<std::int64_t>(rows, 4); }
};

std::int64_t depth(const RecurrentProblem& p) { return p.backward ? p.width() : p.hidden; }

class Division {
 public:
  Division(const RecurrentProblem& p, const Owned& owned) : p_(p), owned_(owned) {}

  std::int64_t columns() const { return 4 * ceil_div(owned_.units * (p_.backward ? 1 : gate_count(p_.kind.cell)), 4); }
  std::int64_t lanes() const { return columns() / 4 * (owned_.rows / owned_.each()); }
  std::int64_t items() const { return lanes() * owned_.split; }
  std::int64_t blocks() const { return ceil_div(p_.hidden, owned_.units); }
  std::int64_t row_blocks() const { return ceil_div(p_.batch, owned_.rows); }
  std::int64_t local_bytes() const { return 4 * owned_.rows * (columns() * owned_.split + (owned_.whole ? depth(p_) : 0)); }

  /// Clocks that the recurrence takes, by what its groups read and multiply. Measured on an H200, where 64 steps of an LSTM of
  /// 128 states in one launch take 75 us, and a step of 512 in a launch of its own 11 and 18 us.
  double clocks(const DeviceInfo& device) const {
    constexpr double multiplies = 128;  // of a unit in a clock
    const double terms = static_cast<double>(depth(p_) * columns()), all_items = static_cast<double>(items());
    const double idle = std::max(1.0, static_cast<double>(group_size(device)) / all_items);
    const double multiplying = terms * static_cast<double>(owned_.rows) / multiplies * idle;
    const auto units = exec::units_of(device), groups = blocks() * row_blocks();
    if (owned_.whole) {
      // What a unit's own cache has room for, and what comes from the device's.
      constexpr double own_cache = 160 << 10, from_own_cache = 128, from_cache = 22, step_of_group = 1400;
      const double bytes = 4 * terms - 16 * all_items * static_cast<double>(owned_.kept), own = std::min(bytes, own_cache);
      const double reading = own / from_own_cache + (bytes - own) / from_cache;
      return static_cast<double>(p_.steps * ceil_div(groups, units)) * (std::max(reading, multiplying) + step_of_group);
    }
    // Loads of a group follow one another; those of a second one on the unit hide behind them.
    constexpr double of_group = 10, of_unit = 64, step_of_launch = 15000;
    const auto rounds = ceil_div(groups, 2 * units);
    const double bytes = 4 * static_cast<double>(depth(p_) * (columns() + owned_.rows));
    const double together = static_cast<double>(std::min<std::int64_t>(ceil_div(groups, units), 2));
    const double step = std::max({bytes / of_group, together * bytes / of_unit, together * multiplying});
    return static_cast<double>(p_.steps) * (static_cast<double>(rounds) * step + step_of_launch);
  }

 private:
  const RecurrentProblem& p_;
  const Owned owned_;
};

/// Whether an item has some 250 registers: on Intel's GPUs it has fewer. On CPUs it does not matter.
bool keeps_weights(const DeviceInfo& device) {
  return device.type == DeviceType::cpu || device.architecture.starts_with("sm_") || device.architecture.starts_with("gfx");
}

/// With the terms divided as far as the group has items, where it fits.
std::optional<Owned> fitting(const RecurrentProblem& p, Owned owned, const DeviceInfo& device) {
  constexpr std::int64_t most_parts = 32, fewest_terms = 4, most_local = 32 << 10;
  const auto lanes = Division(p, owned).lanes();
  if (lanes > group_size(device)) return std::nullopt;
  owned.split = std::min({group_size(device) / lanes, most_parts, ceil_div(depth(p), fewest_terms)});
  // As many of an item's terms as are loaded together, times those that all items have.
  const auto chunk = 4 / owned.each();
  owned.kept = std::min(owned.most_kept, depth(p) / (owned.split * chunk) * chunk);
  const auto local = Division(p, owned).local_bytes();
  if (local > std::min<std::int64_t>(most_local, static_cast<std::int64_t>(device.local_memory))) return std::nullopt;
  return owned;
}

class Gpu {
 public:
  Gpu(const RecurrentProblem& problem, exec::Recorder& recorder)
      : p_(problem), recorder_(recorder), owned_(chosen()), division_(p_, owned_) {}

  void lower() {
    const auto elements = division_.blocks() * depth(p_) * division_.columns();
    packed_ = recorder_.prepack({Shape{elements}, Dtype::f32}, p_.weight);
    auto& pack = define(kernel("recurrent_pack_gpu"), true, false);
    pack.in("weight", p_.weight).out("packed", packed_);
    flat(pack, elements);
    if (owned_.whole) {
      steps(0, count());
      return;
    }
    const auto states = division_.row_blocks() * depth(p_) * owned_.rows;
    for (auto& state : states_) state = recorder_.temporary({Shape{states}, Dtype::f32});
    if (!p_.backward) {
      auto& begin = define(kernel("recurrent_begin_gpu"), false, true);
      begin.in("h0", p_.h0).out("state", states_[0]).arg(p_.batch);
      flat(begin, states);
    }
    for (std::int64_t i = 0; i < count(); ++i) steps(i, i + 1);
  }

 private:
  Owned chosen() const {
    const auto& config = recorder_.config();
    const Owned owned{
        .whole = config["whole"] != 0, .rows = config["rows"], .units = config["units"], .most_kept = config["kept"]};
    const auto fits = fitting(p_, owned, recorder_.device());
    // As of a configuration for another problem.
    if (!fits) throw Unsupported("no work-group holds so many rows and units");
    return *fits;
  }
  /// On the way back the gradient of the initial states is a step more.
  std::int64_t count() const { return p_.steps + (p_.backward ? 1 : 0); }

  exec::Launch& kernel(std::string_view function) const {
    return recorder_.kernel("recurrent_gpu", function)
        .define("CELL", static_cast<std::int64_t>(p_.kind.cell))
        .define("BACKWARD", p_.backward);
  }
  exec::Launch& define(exec::Launch& launch, bool pack, bool begin) const {
    return launch.define("HIDDEN", p_.hidden)
        .define("UNITS", owned_.units)
        .define("ROWS", owned_.rows)
        .define("PACK", pack)
        .define("BEGIN", begin);
  }
  void flat(exec::Launch& launch, std::int64_t elements) const {
    launch.range({elements}, {std::min<std::int64_t>(64, group_size(recorder_.device()))});
  }

  /// The launch of the recurrence's steps `first` to `end`.
  void steps(std::int64_t first, std::int64_t end) {
    const auto group = std::min(32 * ceil_div(division_.items(), 32), group_size(recorder_.device()));
    auto& launch = recurrent_launch(p_, recorder_, "recurrent_gpu", p_.backward ? "recurrent_backward_gpu" : "recurrent_gpu");
    define(launch, false, false)
        .define("WHOLE", owned_.whole)
        .define("EACH", owned_.each())
        .define("SPLIT", owned_.split)
        .define("KEPT", owned_.kept)
        .define("GROUP", group);
    p_.backward ? backward(launch, first) : forward(launch, first);
    launch.args({p_.kind.reverse, first, end, p_.steps, p_.batch})
        .range({group * division_.blocks(), division_.row_blocks()}, {group, 1})
        .flops(p_.flops() * static_cast<double>(std::min(end, p_.steps) - first))
        .detail(fmt::format("{} in {} rows x {}", p_.text(), owned_.rows, owned_.units));
  }

  void forward(exec::Launch& launch, std::int64_t step) const {
    const auto t = p_.kind.reverse ? p_.steps - 1 - step : step;
    part(launch.in("x", p_.x.at(begin(t, p_.width())), exec::Access::same_element), p_.width());
    launch.in("h0", p_.h0);
    if (p_.lstm()) launch.in("c0", p_.c0);
    launch.in("packed", packed_);
    if (!owned_.whole) launch.in("state", states_[at(step)]);
    if (p_.gru()) launch.in("bias", p_.bias);
    if (p_.lengths) launch.in("lengths", *p_.lengths);
    part(launch.out("y", p_.y.at(begin(t, p_.hidden))), p_.hidden);
    carried(launch, "h", p_.h, step == 0);
    if (p_.lstm()) carried(launch, "c", p_.c, step == 0);
    if (p_.gated()) {
      part(launch.out("gates", p_.gates.at(begin(t, p_.width()))), p_.width());
      part(launch.out("cells", p_.cells.at(begin(t, p_.hidden))), p_.hidden);
    }
    if (!owned_.whole) carried(launch, "next", states_[at(step + 1)], step == 0);
  }

  void backward(exec::Launch& launch, std::int64_t step) const {
    // The launch after the last step neither reads nor writes what belongs to a step, but has the parameters.
    const bool over = step == p_.steps;
    const auto now = over ? step - 1 : step, t = p_.kind.reverse ? now : p_.steps - 1 - now;
    const bool initial = now == p_.steps - 1;
    const auto prior = initial ? t : p_.kind.reverse ? t + 1 : t - 1;
    const auto read = [&](const char* name, exec::Ref all, std::int64_t width) {
      part(launch.in(name, all.at(begin(t, width))), width);
    };
    const auto write = [&](const char* name, exec::Ref all) {
      carried(launch, name, all.at(begin(t, p_.width())), !over);
      part(launch, p_.width());
    };
    /// A sequence's states that the step began with.
    const auto before = [&](const char* name, exec::Ref all, exec::Ref first) {
      if (initial && !owned_.whole)
        launch.in(name, first);
      else
        part(launch.in(name, all.at(begin(prior, p_.hidden))), p_.hidden);
    };
    read("dy", p_.dy, p_.hidden);
    launch.in("dh", p_.dh);
    if (p_.lstm()) {
      launch.in("dc", p_.dc).in("c0", p_.c0);
      if (!owned_.whole) before("c_prior", p_.cells, p_.c0);
    }
    if (p_.gru()) {
      launch.in("h0", p_.h0);
      before("h_prior", p_.y, p_.h0);
    }
    if (p_.gated()) {
      read("gates", p_.gates, p_.width());
      read("cells", p_.cells, p_.hidden);
    } else {
      read("y", p_.y, p_.hidden);
    }
    launch.in("packed", packed_);
    // Nothing comes after the first, and nothing is read.
    if (!owned_.whole) launch.in("state", step == 0 ? p_.dh : states_[at(step + 1)]);
    if (p_.lengths) launch.in("lengths", *p_.lengths);
    carried(launch, "dh0", p_.dh0, step == 0);
    if (p_.lstm()) carried(launch, "dc0", p_.dc0, step == 0);
    write("dgates", p_.dgates);
    if (p_.gru()) write("dproduct", p_.dproduct);
    if (!owned_.whole) carried(launch, "next", states_[at(step)], step < 2);
  }

  static std::size_t at(std::int64_t step) { return static_cast<std::size_t>(step % 2); }
  /// Where a step's part of a sequence begins, of `width` elements for each of the batch; all steps are one launch's.
  std::int64_t begin(std::int64_t t, std::int64_t width) const { return owned_.whole ? 0 : t * p_.batch * width; }
  void part(exec::Launch& launch, std::int64_t width) const {
    if (!owned_.whole) launch.touches(p_.batch * width);
  }
  /// What launches change one after the other.
  static void carried(exec::Launch& launch, const char* name, exec::Ref to, bool first) {
    first ? launch.out(name, to) : launch.inout(name, to);
  }

  const RecurrentProblem& p_;
  exec::Recorder& recorder_;
  const Owned owned_;
  const Division division_;
  exec::Ref packed_;
  std::array<exec::Ref, 2> states_{};
};

}  // namespace

std::optional<std::string> rejects_recurrent_gpu(const RecurrentProblem& p, const DeviceInfo& device) {
  if (configs_recurrent_gpu(p, device).empty()) return "no group fits into local memory";
  return std::nullopt;
}

std::vector<exec::Config> configs_recurrent_gpu(const RecurrentProblem& p, const DeviceInfo& device) {
  std::vector<Owned> all;
  const auto add = [&](const Owned& owned) {
    if (const auto fits = fitting(p, owned, device)) all.push_back(*fits);
  };
  // The same ones for both ways. Rows and terms whose weights are kept: sums of rows take registers, too.
  using Pair = std::pair<std::int64_t, std::int64_t>;
  constexpr std::array wholes{Pair{1, 36}, Pair{1, 20}, Pair{1, 0}, Pair{2, 20}, Pair{2, 0}, Pair{4, 16}, Pair{4, 0}};
  for (const auto& [rows, kept] : wholes) {
    // Of more rows than there are some would be idle.
    if (rows > 1 && rows >= 2 * p.batch) continue;
    if (kept > 0 && (!keeps_weights(device) || kept > p.hidden)) continue;
    if (!leaves_loops(p.steps * depth(p), device)) add({.whole = true, .rows = rows, .units = p.hidden, .most_kept = kept});
  }
  constexpr std::array tiles{Pair{4, 4},  Pair{4, 16}, Pair{8, 8},  Pair{8, 16}, Pair{16, 4},
                             Pair{16, 8}, Pair{32, 4}, Pair{32, 8}, Pair{64, 8}};
  for (const auto& [rows, units] : tiles)
    if (rows == 4 || rows < 2 * p.batch) add({.rows = rows, .units = units});
  if (all.empty()) add({.rows = 4});
  std::stable_sort(all.begin(), all.end(),
                   [&](const Owned& a, const Owned& b) { return Division(p, a).clocks(device) < Division(p, b).clocks(device); });
  std::vector<exec::Config> result;
  for (const auto& owned : all)
    result.push_back({{"whole", owned.whole}, {"rows", owned.rows}, {"units", owned.units}, {"kept", owned.most_kept}});
  return result;
}

void lower_recurrent_gpu(const RecurrentProblem& p, exec::Recorder& recorder) { Gpu(p, recorder).lower(); }

}  // namespace clnet::ops
