// Special functions, bits, and further products.
#include <optional>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Tensor differences(const Args& in) {
  auto parts = std::vector<Tensor>{in.tensor(0)};
  const int order = static_cast<int>(in.integer(1, "n", 1)), dim = in.dim(2, "dim", -1);
  if (const auto before = in.maybe_tensor(3, "prepend"); before.defined()) parts.insert(parts.begin(), before);
  if (const auto behind = in.maybe_tensor(4, "append"); behind.defined()) parts.push_back(behind);
  // Without an order PyTorch leaves out what stands before and behind, too.
  if (order == 0) return in.tensor(0);
  return diff(parts.size() == 1 ? parts[0] : concat(parts, dim), order, dim);
}

Tensor contracted(const Args& in) {
  const auto a = in.tensor(0), b = in.tensor(1, "other");
  const auto* dims = in.find(2, "dims");
  if (dims == nullptr || !dims->is_array()) return tensordot(a, b, static_cast<int>(in.integer(2, "dims", 2)));
  return tensordot(a, b, to_ints(dims->at(0).get<std::vector<std::int64_t>>()),
                   to_ints(dims->at(1).get<std::vector<std::int64_t>>()));
}

}  // namespace

void add_special(Adapters& adapters) {
  const std::map<std::string, Unary> ones{
      {"tan", tan},         {"asin", asin},          {"acos", acos},       {"atan", atan},
      {"sinh", sinh},       {"cosh", cosh},          {"asinh", asinh},     {"acosh", acosh},
      {"atanh", atanh},     {"exp2", exp2},          {"log10", log10},     {"lgamma", lgamma},
      {"digamma", digamma}, {"erfc", erfc},          {"erfinv", erfinv},   {"sinc", sinc},
      {"i0", i0},           {"special.i1", i1},      {"deg2rad", deg2rad}, {"rad2deg", rad2deg},
      {"isinf", is_inf},    {"isfinite", is_finite}, {"signbit", signbit}, {"bitwise_not", bitwise_not}};
  for (const auto& [name, function] : ones) adapters[name] = unary(function);
  const std::map<std::string, Binary> twos{
      {"logaddexp2", {logaddexp2, logaddexp2, logaddexp2}},
      {"special.xlog1py", {xlog1py, xlog1py, xlog1py}},
      {"floor_divide", {floor_divide, floor_divide, floor_divide}},
      {"remainder", {remainder, remainder, remainder}},
      {"copysign", {copysign, copysign, copysign}},
      {"heaviside", {heaviside, heaviside, heaviside}},
      {"fmax", {fmax, fmax, fmax}},
      {"fmin", {fmin, fmin, fmin}},
      {"bitwise_and", {bitwise_and, bitwise_and, bitwise_and}},
      {"bitwise_or", {bitwise_or, bitwise_or, bitwise_or}},
      {"bitwise_xor", {bitwise_xor, bitwise_xor, bitwise_xor}},
      {"bitwise_left_shift", {bitwise_left_shift, bitwise_left_shift, bitwise_left_shift}},
      {"bitwise_right_shift", {bitwise_right_shift, bitwise_right_shift, bitwise_right_shift}}};
  for (const auto& [name, function] : twos) adapters[name] = binary(function);
  const std::map<std::string, std::string> reflections{
      {"__rmod__", "remainder"}, {"__rand__", "bitwise_and"}, {"__ror__", "bitwise_or"}, {"__rxor__", "bitwise_xor"}};
  for (const auto& [name, forward] : reflections) adapters[name] = reflected(twos.at(forward));
  adapters["logical_xor"] = one([](const Args& in) { return logical_xor(in.tensor(0), in.tensor(1, "other")); });
  adapters["logit"] = one([](const Args& in) {
    const auto eps = in.maybe_number(1, "eps");
    return eps ? logit(in.tensor(0), *eps) : logit(in.tensor(0));
  });
  // OpInfo has the tensor first.
  for (const char* name : {"polygamma", "special.polygamma"})
    adapters[name] = one([](const Args& in) { return polygamma(in.integer(1, "n"), in.tensor(0)); });
  adapters["isclose"] = one([](const Args& in) {
    return is_close(in.tensor(0), in.tensor(1, "other"), in.number(2, "rtol", 1e-5), in.number(3, "atol", 1e-8),
                    in.flag(4, "equal_nan"));
  });
  adapters["allclose"] = one([](const Args& in) {
    return full({},
                all_close(in.tensor(0), in.tensor(1, "other"), in.number(2, "rtol", 1e-5), in.number(3, "atol", 1e-8),
                          in.flag(4, "equal_nan")),
                Dtype::boolean);
  });
  adapters["diff"] = one(differences);
  adapters["tensordot"] = one(contracted);
  adapters["kron"] = one([](const Args& in) { return kron(in.tensor(0), in.tensor(1, "other")); });
  adapters["linalg.cross"] = one([](const Args& in) { return cross(in.tensor(0), in.tensor(1, "other"), in.dim(2, "dim", -1)); });
  // The old one takes the first dimension of 3.
  adapters["cross"] = one([](const Args& in) {
    const auto a = in.tensor(0);
    int first = 0;
    while (first + 1 < a.rank() && a.size(first) != 3) ++first;
    return cross(a, in.tensor(1, "other"), in.dim(2, "dim", first));
  });
  adapters["cdist"] = one([](const Args& in) {
    static_cast<void>(in.find(3, "compute_mode"));
    return cdist(in.tensor(0, "x1"), in.tensor(1, "x2"), in.number(2, "p", 2));
  });
  adapters["diag_embed"] = one([](const Args& in) {
    return diag_embed(in.tensor(0), in.integer(1, "offset", 0), in.dim(2, "dim1", -2), in.dim(3, "dim2", -1));
  });
  adapters["nextafter"] = one([](const Args& in) {
    require_one_dtype({in.tensor(0), in.tensor(1, "other")});
    return nextafter(in.tensor(0), in.tensor(1, "other"));
  });
  adapters["linalg.vander"] = one([](const Args& in) {
    const auto powers = in.maybe_number(1, "N");
    return vander(in.tensor(0), powers ? std::optional(static_cast<std::int64_t>(*powers)) : std::nullopt, true);
  });
  adapters["meshgrid"] = [](const Args& in) {
    const auto order = in.text(-1, "indexing", "ij");
    return meshgrid(in.tensors(0), order == "xy" ? Indexing::xy : Indexing::ij);
  };
  adapters["logspace"] = one([](const Args& in) {
    in.without_effect({"requires_grad"});
    const auto end_of = [&](int at, const char* name) {
      return in.is_tensor(at, name) ? in.tensor(at, name).item<double>() : in.number(at, name);
    };
    return logspace(end_of(0, "start"), end_of(1, "end"), in.integer(2, "steps"), in.number(3, "base", 10),
                    in.dtype(-1, "dtype", Dtype::f32));
  });
}

}  // namespace clnet::torch::opinfo
