#include "clnet/optim/scheduler.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "lib/graph/capture.h"
#include "lib/optim/state_reader.h"

namespace clnet::optim {

struct Scheduler::Impl {
  Optimizer optimizer;
  Schedule rate, momentum;
  std::int64_t step = 0;

  void set() {
    optimizer.set_learning_rate(rate(step));
    if (momentum) optimizer.set_momentum(momentum(step));
  }
};

Scheduler::Scheduler(const Optimizer& optimizer, Schedule rate, Schedule momentum)
    : impl_(std::make_shared<Impl>(Impl{optimizer, std::move(rate), std::move(momentum)})) {
  if (!optimizer) throw Error("Scheduler: of an optimizer that was never made");
  if (!impl_->rate) throw Error("Scheduler: made without a schedule of the rate");
  impl_->set();
}

void Scheduler::step() {
  // Calls that do not run the function would leave the rate where it is.
  if (capturing()) throw Error("Scheduler::step: not inside compile(), where it acts once; call it behind the compiled function");
  ++impl_->step;
  impl_->set();
}

std::int64_t Scheduler::steps() const { return impl_->step; }

io::StateDict Scheduler::state_dict() const {
  const auto step = impl_->step;
  io::StateDict state{{"step", Tensor::from(std::vector<std::int64_t>{step}, {})}, {"rate", state_number(impl_->rate(step))}};
  if (impl_->momentum) state.emplace_back("momentum", state_number(impl_->momentum(step)));
  return state;
}

void Scheduler::load_state_dict(const io::StateDict& state) {
  StateReader reader(state);
  const auto step = reader.count("step");
  const auto compare = [&](const char* name, const Schedule& schedule) {
    const double saved = reader.number(name);
    if (!reader.good()) return;
    // Three numbers of f32 hold some 72 bits; what is beyond is no other schedule.
    const double now = schedule(step);
    if (state_number(now).to_vector<float>() != state_number(saved).to_vector<float>())
      reader.fault(fmt::format("the {} of step {} is {}, and the schedule's {}", name, step, saved, now));
  };
  compare("rate", impl_->rate);
  if (impl_->momentum) compare("momentum", impl_->momentum);
  reader.require_fit("schedule");
  impl_->step = step;
  impl_->set();
}

}  // namespace clnet::optim
