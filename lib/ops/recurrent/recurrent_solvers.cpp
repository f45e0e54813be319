#include "lib/ops/recurrent/recurrent_solvers.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/ops/rows.h"

namespace clnet::ops {

std::string RecurrentProblem::text() const {
  return fmt::format("{}{} {}x{}x{}", to_string(kind.cell), backward ? " backward" : "", steps, batch, hidden);
}

exec::Launch& recurrent_launch(const RecurrentProblem& p, exec::Recorder& recorder, std::string_view program,
                               std::string_view function) {
  return recorder.kernel(program, function)
      .define("CELL", static_cast<std::int64_t>(p.kind.cell))
      .define("BACKWARD", p.backward)
      .define("LENGTHS", p.lengths.has_value());
}

namespace {

/// How a work-item holds sums: ROWS sequences by gates by UNITS vectors, of which it makes SPAN at a time.
struct Tile {
  std::int64_t lanes, units, span, rows, panels, rows_each;
};

bool has_many_registers(const DeviceInfo& device) {
  return vector_width(device) == 16;  // AVX-512 has 32 vectors, others 16
}

/// With as many rows as the registers hold, or so many.
Tile tile_of(const RecurrentProblem& p, std::int64_t lanes, std::int64_t units, const DeviceInfo& device,
             std::optional<std::int64_t> rows = {}) {
  Tile tile{.lanes = lanes, .units = units, .span = 0, .rows = 0, .panels = ceil_div(p.hidden, units * lanes), .rows_each = 0};
  const bool many = has_many_registers(device);
  const auto vectors = p.backward ? units : units * gate_count(p.kind.cell);
  tile.span = many || vectors < 4 ? vectors : 2;
  // The panel's vectors and one more are beside the sums.
  const auto most = std::min<std::int64_t>(8, (many ? 24 : 12) / tile.span);
  const auto cores = std::max<std::int64_t>(device.compute_units, 1);
  tile.rows_each = ceil_div(p.batch, std::min(cores, p.batch));
  tile.rows = rows.value_or(ceil_div(tile.rows_each, ceil_div(tile.rows_each, most)));
  return tile;
}

std::vector<exec::Config> cpu_configs(const RecurrentProblem& p, const DeviceInfo& device) {
  std::vector<exec::Config> result;
  const auto gates = p.backward ? 1 : gate_count(p.kind.cell);
  for (const auto lanes : vector_widths(device)) {
    const auto add = [&](std::int64_t units, std::int64_t rows) {
      result.push_back({{"lanes", lanes}, {"units", units}, {"rows", rows}});
    };
    const auto fitting = std::min<std::int64_t>(has_many_registers(device) ? 4 : 2, ceil_div(p.hidden, lanes));
    const std::int64_t likely = gates == 1 ? fitting : 1;
    const auto rows = tile_of(p, lanes, likely, device).rows;
    add(likely, rows);
    for (const std::int64_t units : {1, 2})
      if (units != likely && units <= fitting) add(units, tile_of(p, lanes, units, device).rows);
    if (rows > 1) add(likely, ceil_div(rows, 2));
  }
  return result;
}

void cpu_lower(const RecurrentProblem& p, exec::Recorder& recorder) {
  const auto& config = recorder.config();
  const auto tile = tile_of(p, config["lanes"], config["units"], recorder.device(), config["rows"]);
  const auto configure = [&](exec::Launch& target, bool pack) -> exec::Launch& {
    return target.define("VW", tile.lanes)
        .define("UNITS", tile.units)
        .define("SPAN", tile.span)
        .define("ROWS", tile.rows)
        .define("REST", tile.rows_each % tile.rows)
        .define("PACK", pack);
  };
  const auto packed = recorder.prepack({Shape{tile.panels * tile.units * tile.lanes * p.width()}, Dtype::f32}, p.weight);
  configure(recorder.kernel("recurrent_cpu", p.backward ? "recurrent_backward_pack_cpu" : "recurrent_pack_cpu"), true)
      .define("CELL", static_cast<std::int64_t>(p.kind.cell))
      .in("weight", p.weight)
      .out("packed", packed)
      .arg(p.hidden)
      .range({tile.panels, gate_count(p.kind.cell)}, {1, 1});
  const bool lstm = p.lstm(), gru = p.gru();
  auto& steps =
      configure(recurrent_launch(p, recorder, "recurrent_cpu", p.backward ? "recurrent_backward_cpu" : "recurrent_cpu"), false);
  if (p.backward) {
    steps.in("dy", p.dy).in("dh", p.dh);
    if (lstm) steps.in("dc", p.dc).in("c0", p.c0);
    if (gru) steps.in("y", p.y).in("h0", p.h0);
    if (p.gated())
      steps.in("gates", p.gates).in("cells", p.cells);
    else
      steps.in("y", p.y);
    steps.in("packed", packed);
    if (p.lengths) steps.in("lengths", *p.lengths);
    steps.out("dh0", p.dh0);
    if (lstm) steps.out("dc0", p.dc0);
    steps.out("dgates", p.dgates);
    if (gru) steps.out("dproduct", p.dproduct);
  } else {
    // Each gate is read where its activation is written, by the same work-item.
    steps.in("x", p.x, exec::Access::same_element).in("h0", p.h0);
    if (lstm) steps.in("c0", p.c0);
    steps.in("packed", packed);
    if (gru) steps.in("bias", p.bias);
    if (p.lengths) steps.in("lengths", *p.lengths);
    steps.out("y", p.y).out("h", p.h);
    if (lstm) steps.out("c", p.c);
    if (p.gated()) steps.out("gates", p.gates).out("cells", p.cells);
  }
  steps.args({p.kind.reverse, p.steps, p.batch, p.hidden, tile.rows_each})
      .range({ceil_div(p.batch, tile.rows_each)}, {1})
      .flops(p.flops() * static_cast<double>(p.steps))
      .detail(fmt::format("{} in {} rows", p.text(), tile.rows));
}

/// A launch per step.
class Direct {
 public:
  Direct(const RecurrentProblem& problem, exec::Recorder& recorder) : p_(problem), recorder_(recorder) {}

  void forward() {
    for (std::int64_t i = 0; i < p_.steps; ++i) {
      const auto t = p_.kind.reverse ? p_.steps - 1 - i : i, prior = i == 0 ? -1 : p_.kind.reverse ? t + 1 : t - 1;
      auto& step = start("recurrent_step_direct");
      part(step, "x", p_.x, t, p_.width(), exec::Access::same_element);
      state(step, "h_prior", p_.y, p_.h0, prior);
      step.in("h0", p_.h0);
      if (p_.lstm()) {
        state(step, "c_prior", p_.cells, p_.c0, prior);
        step.in("c0", p_.c0);
      }
      step.in("weight", p_.weight);
      if (p_.gru()) step.in("bias", p_.bias);
      if (p_.lengths) step.in("lengths", *p_.lengths);
      part_out(step, "y", p_.y, t, p_.hidden);
      if (p_.gated()) {
        part_out(step, "gates", p_.gates, t, p_.width());
        part_out(step, "cells", p_.cells, t, p_.hidden);
      }
      step.args({t, prior, p_.steps, p_.batch, p_.hidden}).flops(p_.flops()).detail(p_.text());
      range(step);
    }
    last(p_.y, p_.h0, p_.h);
    if (p_.lstm()) last(p_.cells, p_.c0, p_.c);
  }

  void backward() {
    const auto products = p_.gru() ? p_.dproduct : p_.dgates;
    std::int64_t after = 0;
    for (std::int64_t i = 0; i < p_.steps; ++i) {
      const auto t = p_.kind.reverse ? i : p_.steps - 1 - i;
      const auto prior = i == p_.steps - 1 ? -1 : p_.kind.reverse ? t + 1 : t - 1;
      const auto carry = [&](exec::Launch& step, const char* name, exec::Ref to) {
        i == 0 ? step.out(name, to) : step.inout(name, to);
      };
      auto& step = start("recurrent_backward_step_direct");
      part(step, "dy", p_.dy, t, p_.hidden);
      step.in("dh", p_.dh);
      if (p_.lstm()) {
        step.in("dc", p_.dc);
        state(step, "c_prior", p_.cells, p_.c0, prior);
        step.in("c0", p_.c0);
      }
      if (p_.gru()) {
        state(step, "h_prior", p_.y, p_.h0, prior);
        step.in("h0", p_.h0);
      }
      if (p_.gated()) {
        part(step, "gates", p_.gates, t, p_.width());
        part(step, "cells", p_.cells, t, p_.hidden);
      } else {
        part(step, "y", p_.y, t, p_.hidden);
      }
      // At first nothing has come after, and nothing is read.
      if (i == 0)
        step.in("after", p_.dh);
      else
        part(step, "after", products, after, p_.width());
      step.in("weight", p_.weight);
      if (p_.lengths) step.in("lengths", *p_.lengths);
      carry(step, "dh0", p_.dh0);
      if (p_.lstm()) carry(step, "dc0", p_.dc0);
      part_out(step, "dgates", p_.dgates, t, p_.width());
      if (p_.gru()) part_out(step, "dproduct", p_.dproduct, t, p_.width());
      step.args({t, prior, i == 0, p_.steps, p_.batch, p_.hidden}).flops(p_.flops()).detail(p_.text());
      range(step);
      after = t;
    }
    auto& end = start("recurrent_backward_last_direct", true);
    part(end, "after", products, after, p_.width());
    end.in("weight", p_.weight).inout("dh0", p_.dh0).args({p_.batch, p_.hidden});
    range(end);
  }

 private:
  exec::Launch& start(std::string_view function, bool last = false) {
    return recurrent_launch(p_, recorder_, "recurrent_direct", function).define("LAST", last);
  }
  void part(exec::Launch& step, const char* name, exec::Ref all, std::int64_t t, std::int64_t width,
            exec::Access access = exec::Access::any) const {
    step.in(name, all.at(t * p_.batch * width), access).touches(p_.batch * width);
  }
  void part_out(exec::Launch& step, const char* name, exec::Ref all, std::int64_t t, std::int64_t width) const {
    step.out(name, all.at(t * p_.batch * width)).touches(p_.batch * width);
  }
  /// States after step `prior`, or the initial ones.
  void state(exec::Launch& step, const char* name, exec::Ref all, exec::Ref initial, std::int64_t prior) const {
    if (prior < 0)
      step.in(name, initial);
    else
      part(step, name, all, prior, p_.hidden);
  }
  void last(exec::Ref all, exec::Ref initial, exec::Ref to) {
    auto& copy = start("recurrent_last_direct", true);
    copy.in("states", all).in("initial", initial);
    if (p_.lengths) copy.in("lengths", *p_.lengths);
    copy.out("last", to).args({p_.kind.reverse, p_.steps, p_.batch, p_.hidden});
    range(copy);
  }
  void range(exec::Launch& step) const {
    step.range({p_.hidden, p_.batch}, {std::min<std::int64_t>(64, group_size(recorder_.device())), 1});
  }

  const RecurrentProblem& p_;
  exec::Recorder& recorder_;
};

void direct_lower(const RecurrentProblem& problem, exec::Recorder& recorder) {
  Direct direct(problem, recorder);
  problem.backward ? direct.backward() : direct.forward();
}

}  // namespace

const exec::SolverList<RecurrentProblem>& recurrent_solvers() {
  static const exec::SolverList<RecurrentProblem> solvers{
      "recurrent",
      {{"cpu", needs_vectors<RecurrentProblem>, cpu_lower, nullptr, cpu_configs},
       {"gpu", rejects_recurrent_gpu, lower_recurrent_gpu, nullptr, configs_recurrent_gpu, exec::MadeFor::gpus},
       {"direct", exec::accepts_everything<RecurrentProblem>, direct_lower}}};
  return solvers;
}

namespace {

/// Lists of solvers are known before anything is recorded.
[[maybe_unused]] const auto& registered = recurrent_solvers();

}  // namespace

}  // namespace clnet::ops
