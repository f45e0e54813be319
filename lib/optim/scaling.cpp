#include "lib/optim/scaling.h"

#include <cmath>

#include "clnet/device.h"
#include "clnet/ops.h"
#include "lib/optim/options.h"

namespace clnet::optim {

namespace {

/// Both it and its reciprocal are normal numbers of f32 from the one to the other.
constexpr double least = 0x1p-100, most = 0x1p100;

const LossScale& checked(const LossScale& o) {
  require(o.initial >= least && o.initial <= most, "loss scale", "initial", o.initial);
  require(o.growth >= 1 && std::isfinite(o.growth), "loss scale", "growth", o.growth);
  require(o.backoff > 0 && o.backoff <= 1, "loss scale", "backoff", o.backoff);
  require(o.interval >= 0, "loss scale", "interval", static_cast<double>(o.interval));
  return o;
}

}  // namespace

Scaling::Scaling(const LossScale& options, const Tensor& made)
    : options_(checked(options)), scale_(Tensor::scalar(options.initial)), good_(Tensor::scalar(0, Dtype::i64)), made_(made) {}

void Scaling::settle(const std::shared_ptr<ocl::Context>& device) {
  if (auto known = exec::device_of_graph(scale()))
    home_ = std::move(known);
  else if (!home_)
    home_ = device;
}

Tensor Scaling::moved(const Tensor& tensor, const std::shared_ptr<ocl::Context>& device) const {
  return exec::moved(tensor, home_, device);
}

std::vector<Tensor> Scaling::unscaled(const std::vector<Tensor>& gradients) const {
  const Tensor share = 1.0 / scale();
  auto finds = finder();
  // What is on no device is computed on the current one.
  const auto device_of = [&](const Tensor& gradient) {
    auto device = home_ ? finds.find(gradient) : nullptr;
    return device || !home_ ? device : context_of(Device::current());
  };
  std::vector<Tensor> result;
  for (const auto& gradient : gradients)
    result.push_back(gradient.defined() ? cast(gradient, Dtype::f32) * moved(share, device_of(gradient)) : gradient);
  return result;
}

Tensor Scaling::all_finite(const std::vector<Tensor>& gradients, const Devices& devices) const {
  // 0 times infinity or NaN is NaN, and so is every sum with it.
  Tensor total = Tensor::scalar(0);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined()) total = total + exec::moved(sum(cast(gradients[i], Dtype::f32) * 0.0), devices[i], home_);
  return eq(total, 0.0);
}

Scaling::Changes Scaling::after(const Tensor& finite) const {
  const Tensor good = good_, made = made_, now = scale();
  const Tensor lower = maximum(now * options_.backoff, least);
  const Tensor more = where(finite, good + 1.0, zeros_like(good));
  Changes changes{{made_, where(finite, made + 1.0, made)}};
  if (options_.interval == 0) {
    changes.emplace_back(scale_, where(finite, now, lower));
    changes.emplace_back(good_, more);
    return changes;
  }
  const Tensor grows = greater_equal(more, static_cast<double>(options_.interval));
  changes.emplace_back(scale_, where(finite, where(grows, minimum(now * options_.growth, most), now), lower));
  changes.emplace_back(good_, where(grows, zeros_like(good), more));
  return changes;
}

io::StateDict Scaling::state_dict() const {
  return {{"loss_scale", scale_}, {"loss_scale_good", good_}, {"loss_scale_made", made_}};
}

Scaling::Changes Scaling::read(StateReader& reader, std::int64_t& made) const {
  Changes changes{{scale_, reader.take("loss_scale", scale_.value().spec())}};
  made = reader.count("loss_scale_made");
  changes.emplace_back(good_, Tensor::scalar(static_cast<double>(reader.count("loss_scale_good")), Dtype::i64));
  changes.emplace_back(made_, Tensor::scalar(static_cast<double>(made), Dtype::i64));
  return changes;
}

}  // namespace clnet::optim
